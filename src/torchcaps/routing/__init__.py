"""Routing algorithms: one file each, a pure function and the module that owns its settings."""

from torchcaps.kernels import Gradient

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
    keep_float32,
    list_routings,
    require_iterations,
    require_sizes,
)
from .cost import RoutingCost, length_cost, softmax_cost, squash_cost
from .dynamic import DynamicRouting, dynamic_routing, of_inner_rounds, require_gradient
from .em import EMCosts, EMRouting, EMSettings, em_routing, fit_parents
from .em_rotation import EMRotationRouting, em_rotation_routing
from .fused import (
    FusedPath,
    FusedRouting,
    FusedStoredRouting,
    Parts,
    RoutesInParts,
    StoredVotes,
    UncastVotes,
    fused_path,
    is_transformed,
    is_watched,
)
from .inverted_attention import InvertedAttentionRouting, inverted_attention_routing
from .iterations import Iterations, iterations_of, set_iterations
from .scaled_distance import ScaledDistanceRouting, scaled_distance_routing
from .self_attention import SelfAttentionRouting, self_attention_routing
from .self_routing import SelfRouting, self_routing
from .shared_matrix import SharedMatrixRouting, even_routing
from .slot_attention import SlotAttentionRouting, slot_attention_routing
from .variational_bayes import VariationalBayesRouting, variational_bayes_routing

__all__ = [
    "ROUTINGS",
    "DynamicRouting",
    "EMCosts",
    "EMRotationRouting",
    "EMRouting",
    "EMSettings",
    "FusedPath",
    "FusedRouting",
    "FusedStoredRouting",
    "Gradient",
    "InvertedAttentionRouting",
    "Iterations",
    "Parts",
    "ReadsOut",
    "RoutesInParts",
    "Routing",
    "RoutingCost",
    "RoutingShape",
    "RoutingSpec",
    "ScaledDistanceRouting",
    "SelfAttentionRouting",
    "SelfRouting",
    "SharedMatrixRouting",
    "SlotAttentionRouting",
    "StoredVotes",
    "SumsVotes",
    "UncastVotes",
    "VariationalBayesRouting",
    "build_routing",
    "create_routing",
    "describe_routing",
    "dynamic_routing",
    "em_rotation_routing",
    "em_routing",
    "even_routing",
    "fit_parents",
    "fused_path",
    "inverted_attention_routing",
    "is_transformed",
    "is_watched",
    "iterations_of",
    "keep_float32",
    "length_cost",
    "list_routings",
    "of_inner_rounds",
    "require_gradient",
    "require_iterations",
    "require_sizes",
    "scaled_distance_routing",
    "self_attention_routing",
    "self_routing",
    "set_iterations",
    "slot_attention_routing",
    "softmax_cost",
    "squash_cost",
    "variational_bayes_routing",
]
