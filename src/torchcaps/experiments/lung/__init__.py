"""Lung nodules: SegCaps and U-Nets with all, half and a tenth of the training patients."""

from . import runs
from .claims import CHAPTER

__all__ = ["CHAPTER", "runs"]
