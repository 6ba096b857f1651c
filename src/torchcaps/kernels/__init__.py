"""Fused kernels: faster twins of what `routing` and `layers` compute."""

from .dynamic import fused_dynamic_coupling, fused_dynamic_routing, slower_reason, unsupported_reason
from .em import em_unsupported_reason, fused_em_routing
from .em_state import EMScales
from .scaled_distance import fused_scaled_distance_routing, scaled_distance_unsupported_reason
from .votes_dynamic import fused_map_routing, map_unsupported_reason

__all__ = [
    "EMScales",
    "em_unsupported_reason",
    "fused_dynamic_coupling",
    "fused_dynamic_routing",
    "fused_em_routing",
    "fused_map_routing",
    "fused_scaled_distance_routing",
    "map_unsupported_reason",
    "scaled_distance_unsupported_reason",
    "slower_reason",
    "unsupported_reason",
]
