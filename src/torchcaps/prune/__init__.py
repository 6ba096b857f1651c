"""Pruning: weights, capsules and channels that a network can do without."""

from .groups import Units, measure_units
from .lobster import Lobster, Pull, prunable_layers, prunable_weights
from .plateau import Plateau
from .sparsity import count_sparsity
from .threshold import Cut, prune_to_loss

__all__ = [
    "Cut",
    "Lobster",
    "Plateau",
    "Pull",
    "Units",
    "count_sparsity",
    "measure_units",
    "prunable_layers",
    "prunable_weights",
    "prune_to_loss",
]
