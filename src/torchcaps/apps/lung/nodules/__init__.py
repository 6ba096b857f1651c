"""Nodules: what readers outlined, the voxels it encloses, and what at least half of them agree on."""

from .annotations import Annotations, Marking, Outline, read_annotations, series_uid_of
from .nodules import Nodule, find_nodules, nodules_of_mask
from .outline import trace_outline

__all__ = [
    "Annotations",
    "Marking",
    "Nodule",
    "Outline",
    "find_nodules",
    "nodules_of_mask",
    "read_annotations",
    "series_uid_of",
    "trace_outline",
]
