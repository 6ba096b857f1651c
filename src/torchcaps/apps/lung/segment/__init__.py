"""Segmentation of whole scans: windows over the lungs, nodules, and what carries them."""

from .carried import Carried, nodule_carriers
from .infer import native_bf16, segment_volume
from .lungs import CELL, lung_field
from .pieces import SMALLEST, THRESHOLD, FoundNodule, NodulesFound, list_nodules
from .slice_network import SliceNetwork, slice_network

__all__ = [
    "CELL",
    "SMALLEST",
    "THRESHOLD",
    "Carried",
    "FoundNodule",
    "NodulesFound",
    "SliceNetwork",
    "list_nodules",
    "lung_field",
    "native_bf16",
    "nodule_carriers",
    "segment_volume",
    "slice_network",
]
