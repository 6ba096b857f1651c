"""What every other package stands on: registry, types, errors, seeding and the squash functions."""

from .errors import MissingDataError, UnknownNameError, UserError, unknown_name
from .extras import need
from .fields import Plain, as_plain, build_dataclass
from .metric import METRICS, Metric, metric_of, register_metrics
from .modes import evaluating
from .registry import Registry
from .seeding import derive_seed, generator
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
    "as_plain",
    "build_dataclass",
    "derive_seed",
    "evaluating",
    "generator",
    "metric_of",
    "need",
    "register_metrics",
    "sides",
    "squash",
    "squash_exponential",
    "unknown_name",
]
