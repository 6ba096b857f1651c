"""What every other package stands on: registry, types, errors, seeding, rotations and squash functions."""

from .errors import MissingDataError, UnknownNameError, UserError, first_line, listed, reason_of, unknown_name
from .extras import EXTRAS, need
from .fields import (
    Plain,
    as_plain,
    build_dataclass,
    convert,
    finite_or_none,
    require_equal_lengths,
    shown,
    whole_numbers,
)
from .labels import mark_labels, require_labels, require_scores
from .levels import even_levels
from .machine import machine_memory
from .metric import METRICS, Better, Metric, metric_of, register_metrics
from .modes import evaluating, sketching
from .precision import without_autocast
from .registry import Registry
from .rotation import (
    AXIAL_SQUARINGS,
    axial_mean,
    distinct_numbers,
    euler_grid,
    euler_of_quaternions,
    hamilton,
    quaternions_of_euler,
    random_rotations,
    rotation_angle,
    rotation_matrices,
    rotations_of_6d,
)
from .seeding import derive_seed, digest_of, generator
from .sides import ImageSize, Sides, sides
from .squash import pose_lengths, squash, squash_divisor, squash_exponential
from .symmetry import group_table
from .types import (
    CapsuleOutput,
    Capsules,
    DescriptorOutput,
    LayerTrace,
    Number,
    Output,
    OutputT,
    PoseOutput,
    PoseTarget,
    Routed,
    SegmentationOutput,
    Targets,
    TargetsT,
)
from .wording import counted, markdown_table, say_truth

__all__ = [
    "AXIAL_SQUARINGS",
    "EXTRAS",
    "METRICS",
    "Better",
    "CapsuleOutput",
    "Capsules",
    "DescriptorOutput",
    "ImageSize",
    "LayerTrace",
    "Metric",
    "MissingDataError",
    "Number",
    "Output",
    "OutputT",
    "Plain",
    "PoseOutput",
    "PoseTarget",
    "Registry",
    "Routed",
    "SegmentationOutput",
    "Sides",
    "Targets",
    "TargetsT",
    "UnknownNameError",
    "UserError",
    "as_plain",
    "axial_mean",
    "build_dataclass",
    "convert",
    "counted",
    "derive_seed",
    "digest_of",
    "distinct_numbers",
    "euler_grid",
    "euler_of_quaternions",
    "evaluating",
    "even_levels",
    "finite_or_none",
    "first_line",
    "generator",
    "group_table",
    "hamilton",
    "listed",
    "machine_memory",
    "mark_labels",
    "markdown_table",
    "metric_of",
    "need",
    "pose_lengths",
    "quaternions_of_euler",
    "random_rotations",
    "reason_of",
    "register_metrics",
    "require_equal_lengths",
    "require_labels",
    "require_scores",
    "rotation_angle",
    "rotation_matrices",
    "rotations_of_6d",
    "say_truth",
    "shown",
    "sides",
    "sketching",
    "squash",
    "squash_divisor",
    "squash_exponential",
    "unknown_name",
    "whole_numbers",
    "without_autocast",
]
