"""What every other package stands on: registry, types, errors, seeding and the squash functions."""

from .errors import MissingDataError, UnknownNameError, UserError
from .metric import METRICS, Metric, metric_of, register_metrics
from .registry import Registry
from .sides import Sides, sides
from .squash import squash, squash_exponential
from .types import (
    CapsuleOutput,
    Capsules,
    DescriptorOutput,
    LayerTrace,
    PoseOutput,
    PoseTarget,
    Routed,
    SegmentationOutput,
)

__all__ = [
    "METRICS",
    "CapsuleOutput",
    "Capsules",
    "DescriptorOutput",
    "LayerTrace",
    "Metric",
    "MissingDataError",
    "PoseOutput",
    "PoseTarget",
    "Registry",
    "Routed",
    "SegmentationOutput",
    "Sides",
    "UnknownNameError",
    "UserError",
    "metric_of",
    "register_metrics",
    "sides",
    "squash",
    "squash_exponential",
]
