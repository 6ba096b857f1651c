"""Pruning of runs: while they train, by a search over channels, and the removal of what was cut."""

from .candidates import StructuredPruning
from .search import prune_run
from .shrink_run import shrink_run

__all__ = ["StructuredPruning", "prune_run", "shrink_run"]
