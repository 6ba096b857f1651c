"""Lung nodules: CT volumes and their annotations, from published files to what networks learn from."""

from .read import read_volume
from .volume import Volume, unwindow, window

__all__ = ["Volume", "read_volume", "unwindow", "window"]
