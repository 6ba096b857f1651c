"""Chapter 8, rotations as quaternions: the runs behind its table and figure, and experiments beyond them."""

from . import images, runs, weights
from .setting import CHAPTER

__all__ = ["CHAPTER", "images", "runs", "weights"]
