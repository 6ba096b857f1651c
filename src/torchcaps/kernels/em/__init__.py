"""Votes and EM routing of a layer in one operation."""

from .operators import em_unsupported_reason, fused_em_routing
from .state import EMScales

__all__ = ["EMScales", "em_unsupported_reason", "fused_em_routing"]
