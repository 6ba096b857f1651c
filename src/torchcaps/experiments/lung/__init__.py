"""Chapter 9, lung nodules: the runs behind its table, and experiments beyond it."""

from . import false_marks, runs, segcaps_plus
from .claims import CHAPTER

__all__ = ["CHAPTER", "false_marks", "runs", "segcaps_plus"]
