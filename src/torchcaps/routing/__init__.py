"""Routing algorithms: one file each, a pure function and the module that owns its settings."""

from .api import (
    ROUTINGS,
    ReadsOut,
    Routing,
    RoutingShape,
    RoutingSpec,
    SumsVotes,
    build_routing,
    create_routing,
    describe_routing,
    list_routings,
)
from .cost import RoutingCost
from .dynamic import DynamicRouting, dynamic_routing
from .em import EMRouting, em_routing
from .inverted_attention import InvertedAttentionRouting, inverted_attention_routing
from .scaled_distance import ScaledDistanceRouting, scaled_distance_routing
from .self_attention import SelfAttentionRouting, self_attention_routing
from .self_routing import SelfRouting, self_routing
from .shared_matrix import SharedMatrixRouting, even_routing
from .slot_attention import SlotAttentionRouting, slot_attention_routing
from .variational_bayes import VariationalBayesRouting, variational_bayes_routing

__all__ = [
    "ROUTINGS",
    "DynamicRouting",
    "EMRouting",
    "InvertedAttentionRouting",
    "ReadsOut",
    "Routing",
    "RoutingCost",
    "RoutingShape",
    "RoutingSpec",
    "ScaledDistanceRouting",
    "SelfAttentionRouting",
    "SelfRouting",
    "SharedMatrixRouting",
    "SlotAttentionRouting",
    "SumsVotes",
    "VariationalBayesRouting",
    "build_routing",
    "create_routing",
    "describe_routing",
    "dynamic_routing",
    "em_routing",
    "even_routing",
    "inverted_attention_routing",
    "list_routings",
    "scaled_distance_routing",
    "self_attention_routing",
    "self_routing",
    "slot_attention_routing",
    "variational_bayes_routing",
]
