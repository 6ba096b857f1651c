"""Segmentation of whole scans: windows over the lungs, nodules, and what carries them."""

from .carried import Carried, nodule_carriers
from .infer import Windows, segment_volume
from .pieces import FoundNodule, NodulesFound, list_nodules
from .slice_network import SliceNetwork, slice_network

__all__ = [
    "Carried",
    "FoundNodule",
    "NodulesFound",
    "SliceNetwork",
    "Windows",
    "list_nodules",
    "nodule_carriers",
    "segment_volume",
    "slice_network",
]
