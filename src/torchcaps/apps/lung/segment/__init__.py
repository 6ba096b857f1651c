"""Segmentation of whole scans: windows over the lungs, nodules, and what carries them."""

from .find_nodules import Found, Nodule, find_nodules
from .infer import Windows, segment_volume
from .slice_network import SliceNetwork, slice_network

__all__ = ["Found", "Nodule", "SliceNetwork", "Windows", "find_nodules", "segment_volume", "slice_network"]
