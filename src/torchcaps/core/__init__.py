"""What every other package stands on: registry, types, errors, seeding and the squash functions."""

from .errors import MissingDataError, UnknownNameError, UserError
from .fields import Plain
from .metric import METRICS, Metric, metric_of, register_metrics
from .modes import evaluating
from .registry import Registry
from .sides import ImageSize, Sides, sides
from .squash import squash, squash_exponential
from .types import (
    CapsuleOutput,
    Capsules,
    DescriptorOutput,
    LayerTrace,
    Number,
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
    "ImageSize",
    "LayerTrace",
    "Metric",
    "MissingDataError",
    "Number",
    "Plain",
    "PoseOutput",
    "PoseTarget",
    "Registry",
    "Routed",
    "SegmentationOutput",
    "Sides",
    "UnknownNameError",
    "UserError",
    "evaluating",
    "metric_of",
    "register_metrics",
    "sides",
    "squash",
    "squash_exponential",
]
