"""Votes and scaled-distance routing of a layer in one operation, on CUDA."""

from .operators import fused_scaled_distance_routing, scaled_distance_unsupported_reason

__all__ = ["fused_scaled_distance_routing", "scaled_distance_unsupported_reason"]
