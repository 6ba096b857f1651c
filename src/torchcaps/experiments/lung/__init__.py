"""Chapter 9, lung nodules: SegCaps and U-Nets with all, half and a tenth of the training patients."""

from . import false_marks, runs, segcaps_plus
from .claims import CHAPTER

__all__ = ["CHAPTER", "false_marks", "runs", "segcaps_plus"]
