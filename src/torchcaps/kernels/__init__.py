"""Fused kernels: faster twins of what `routing` and `layers` compute, one folder for each operation."""

from .availability import is_for_kernel
from .dynamic import (
    Gradient,
    dynamic_unsupported_reason,
    fused_dynamic_coupling,
    fused_dynamic_routing,
)
from .em import EMScales, em_unsupported_reason, fused_em_routing
from .local_dynamic import fused_local_dynamic_routing, local_dynamic_unsupported_reason
from .pull import fused_keep_zeros, fused_shrink, pull_unsupported_reason
from .scaled_distance import (
    DistanceSettings,
    fused_scaled_distance_routing,
    scaled_distance_unsupported_reason,
)
from .self_attention import fused_self_attention_routing, self_attention_unsupported_reason
from .squashed import fused_squash, squash_unsupported_reason
from .strided_conv import fused_strided_conv, strided_conv_unsupported_reason

__all__ = [
    "DistanceSettings",
    "EMScales",
    "Gradient",
    "dynamic_unsupported_reason",
    "em_unsupported_reason",
    "fused_dynamic_coupling",
    "fused_dynamic_routing",
    "fused_em_routing",
    "fused_keep_zeros",
    "fused_local_dynamic_routing",
    "fused_scaled_distance_routing",
    "fused_self_attention_routing",
    "fused_shrink",
    "fused_squash",
    "fused_strided_conv",
    "is_for_kernel",
    "local_dynamic_unsupported_reason",
    "pull_unsupported_reason",
    "scaled_distance_unsupported_reason",
    "self_attention_unsupported_reason",
    "squash_unsupported_reason",
    "strided_conv_unsupported_reason",
]
