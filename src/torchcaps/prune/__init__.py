"""Pruning: weights, capsules and channels that a network can do without."""

from .adaptive_norm import fresh_statistics
from .channels import group_norms, random_channels, remove_channels, strongest_channels
from .groups import Units, measure_units
from .lobster import Lobster, Pull, prunable_layers, prunable_weights
from .plateau import Plateau
from .shrink import NetworkSize, measure_size, shrink
from .sparsity import count_sparsity
from .structured import Drawn, Target, draw_widths, even_widths
from .threshold import Cut, prune_to_loss
from .trunk_cost import TrunkCost, prunable_trunk

__all__ = [
    "Cut",
    "Drawn",
    "Lobster",
    "NetworkSize",
    "Plateau",
    "Pull",
    "Target",
    "TrunkCost",
    "Units",
    "count_sparsity",
    "draw_widths",
    "even_widths",
    "fresh_statistics",
    "group_norms",
    "measure_size",
    "measure_units",
    "prunable_layers",
    "prunable_trunk",
    "prunable_weights",
    "prune_to_loss",
    "random_channels",
    "remove_channels",
    "shrink",
    "strongest_channels",
]
