"""Batch normalisation of maps that have their channels last in memory, on a CPU."""

from .function import normalise_maps

__all__ = ["normalise_maps"]
