"""Fused kernels: faster twins of what `routing` and `layers` compute."""

from .dynamic import fused_dynamic_coupling, fused_dynamic_routing, unsupported_reason

__all__ = ["fused_dynamic_coupling", "fused_dynamic_routing", "unsupported_reason"]
