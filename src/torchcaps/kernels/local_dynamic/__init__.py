"""Dynamic routing over the stored votes of locally-constrained capsules."""

from .operators import fused_local_dynamic_routing, local_dynamic_unsupported_reason

__all__ = ["fused_local_dynamic_routing", "local_dynamic_unsupported_reason"]
