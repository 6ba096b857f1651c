"""Chapter 4, routing annealing: the runs behind its figures, and what they say of its claims."""

from . import couplings, runs
from .runs import CHAPTER

__all__ = ["CHAPTER", "couplings", "runs"]
