"""What every other package stands on: registry, types, errors, seeding and the squash functions."""

from .errors import MissingDataError, UnknownNameError, UserError
from .modes import evaluating
from .registry import Registry
from .squash import squash, squash_exponential
from .types import CapsuleOutput, Capsules, LayerTrace, Routed, SegmentationOutput

__all__ = [
    "CapsuleOutput",
    "Capsules",
    "LayerTrace",
    "MissingDataError",
    "Registry",
    "Routed",
    "SegmentationOutput",
    "UnknownNameError",
    "UserError",
    "evaluating",
    "squash",
    "squash_exponential",
]
