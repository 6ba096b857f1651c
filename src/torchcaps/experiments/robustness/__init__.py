"""Robustness: affine changes, novel viewpoints, overlapping digits, and objects whose parts are known."""

from . import affnist, overlapping, parts, search, viewpoints

__all__ = ["affnist", "overlapping", "parts", "search", "viewpoints"]
