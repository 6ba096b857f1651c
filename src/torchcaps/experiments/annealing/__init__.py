"""Chapter 4, routing annealing: the runs behind its figures, and what they say of its claims."""

from . import couplings, runs

__all__ = ["couplings", "runs"]
