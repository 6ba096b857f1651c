"""Votes and scaled-distance routing of a layer in one operation, on CUDA."""

from .operators import fused_scaled_distance_routing, scaled_distance_unsupported_reason
from .state import DistanceSettings

__all__ = ["DistanceSettings", "fused_scaled_distance_routing", "scaled_distance_unsupported_reason"]
