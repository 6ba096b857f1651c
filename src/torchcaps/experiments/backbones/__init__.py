"""Chapter 5, efficient capsules: the runs behind its table and figure, and what they say of its claims."""

from . import runs
from .runs import CHAPTER

__all__ = ["CHAPTER", "runs"]
