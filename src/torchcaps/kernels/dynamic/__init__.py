"""Votes and dynamic routing of a layer in one operation."""

from .operators import (
    Gradient,
    dynamic_unsupported_reason,
    fused_dynamic_coupling,
    fused_dynamic_routing,
)

__all__ = [
    "Gradient",
    "dynamic_unsupported_reason",
    "fused_dynamic_coupling",
    "fused_dynamic_routing",
]
