"""Datasets that are made from the digits of another: moved, changed, corrupted or overlaid."""

from .affnist_style import AFFNIST_STYLE, affine_versions
from .corrupted import CORRUPTED_MNIST
from .expanded import EXPANDED_MNIST
from .multi import MULTIMNIST, Overlaid, overlay_digits

__all__ = [
    "AFFNIST_STYLE",
    "CORRUPTED_MNIST",
    "EXPANDED_MNIST",
    "MULTIMNIST",
    "Overlaid",
    "affine_versions",
    "overlay_digits",
]
