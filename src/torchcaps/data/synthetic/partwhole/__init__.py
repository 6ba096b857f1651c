"""PartWhole: a benchmark whose classes differ in the relation of parts alone, with its true parse trees."""

from .dataset import draw_named, partwhole_settings
from .design import Design
from .draw import PartWhole, draw_partwhole
from .files import load_partwhole, write_partwhole
from .grammar import Tree

__all__ = [
    "Design",
    "PartWhole",
    "Tree",
    "draw_named",
    "draw_partwhole",
    "load_partwhole",
    "partwhole_settings",
    "write_partwhole",
]
