"""Lung nodules: CT volumes and their annotations, from published files to what networks learn from."""

from .volume import Volume, read_volume, unwindow, window

__all__ = ["Volume", "read_volume", "unwindow", "window"]
