"""Datasets that are made from the digits of another: moved, changed, corrupted or overlaid."""

from . import corrupted, expanded  # noqa: F401  # register datasets
from .affnist_style import affine_versions
from .multi import Overlaid, overlay_digits

__all__ = [
    "Overlaid",
    "affine_versions",
    "overlay_digits",
]
