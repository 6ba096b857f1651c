"""Data that is drawn: a stand-in for each dataset, and examples with masks, poses and places."""

from . import masks, places, poses  # noqa: F401  # register datasets
from .partwhole import (
    Design,
    PartWhole,
    Tree,
    draw_named,
    draw_partwhole,
    load_partwhole,
    partwhole_settings,
    write_partwhole,
)
from .strokes import synthetic_images

__all__ = [
    "Design",
    "PartWhole",
    "Tree",
    "draw_named",
    "draw_partwhole",
    "load_partwhole",
    "partwhole_settings",
    "synthetic_images",
    "write_partwhole",
]
