"""Data that is drawn: a stand-in for each dataset, and examples with masks, poses and places."""

from .masks import draw_masks
from .partwhole import (
    Design,
    PartWhole,
    PartWholeSettings,
    Tree,
    draw_named,
    draw_partwhole,
    load_partwhole,
    partwhole_settings,
    write_partwhole,
)
from .places import draw_places
from .poses import draw_poses
from .strokes import synthetic_images

__all__ = [
    "Design",
    "PartWhole",
    "PartWholeSettings",
    "Tree",
    "draw_masks",
    "draw_named",
    "draw_partwhole",
    "draw_places",
    "draw_poses",
    "load_partwhole",
    "partwhole_settings",
    "synthetic_images",
    "write_partwhole",
]
