"""Data that is drawn: a stand-in for each dataset, and examples with masks, poses and places."""

from .masks import draw_masks
from .places import draw_places
from .poses import draw_poses
from .strokes import synthetic_images

__all__ = [
    "draw_masks",
    "draw_places",
    "draw_poses",
    "synthetic_images",
]
