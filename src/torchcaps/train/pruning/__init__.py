"""Smaller networks from finished runs: by a search over channels, and without what was cut to zero."""

from .candidates import StructuredPruning
from .search import prune_run
from .shrink_run import shrink_run

__all__ = ["StructuredPruning", "prune_run", "shrink_run"]
