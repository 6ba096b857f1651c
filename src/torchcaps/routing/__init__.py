"""Routing algorithms: one file each, a pure function and the module that owns its settings."""

from .api import ROUTINGS, Routing, RoutingShape, RoutingSpec, build_routing, create_routing, list_routings
from .dynamic import DynamicRouting, dynamic_routing
from .em import EMRouting, em_routing
from .scaled_distance import ScaledDistanceRouting, scaled_distance_routing
from .self_attention import SelfAttentionRouting, self_attention_routing

__all__ = [
    "ROUTINGS",
    "DynamicRouting",
    "EMRouting",
    "Routing",
    "RoutingShape",
    "RoutingSpec",
    "ScaledDistanceRouting",
    "SelfAttentionRouting",
    "build_routing",
    "create_routing",
    "dynamic_routing",
    "em_routing",
    "list_routings",
    "scaled_distance_routing",
    "self_attention_routing",
]
