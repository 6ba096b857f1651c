"""What can be said of a network from outside: its size, its operations, and the health of its capsules."""

from .describe import count_parameters, describe_model
from .diagnosis import Limits
from .flops import FlopCount, count_flops
from .health import HealthReport, distance_from_uniform, inspect, parent_shares, watch_health
from .layer_health import ActivationRange, LayerHealth

__all__ = [
    "ActivationRange",
    "FlopCount",
    "HealthReport",
    "LayerHealth",
    "Limits",
    "count_flops",
    "count_parameters",
    "describe_model",
    "distance_from_uniform",
    "inspect",
    "parent_shares",
    "watch_health",
]
