"""Drawings from plain arrays, each a matplotlib figure bound to no window, and the page that holds them."""

from .confusion import confusion_counts, draw_confusion
from .couplings import draw_couplings
from .curves import draw_curves
from .digits import draw_perturbations, draw_reconstructions
from .report import Report
from .style import to_png, to_svg
from .surprise import draw_surprise
from .tree import draw_tree
from .tree_page import tree_markup

__all__ = [
    "Report",
    "confusion_counts",
    "draw_confusion",
    "draw_couplings",
    "draw_curves",
    "draw_perturbations",
    "draw_reconstructions",
    "draw_surprise",
    "draw_tree",
    "to_png",
    "to_svg",
    "tree_markup",
]
