"""Drawings of parse trees: one geometry, as a figure and as a page."""

from .figure import draw_tree
from .forest import Forest, draw_forest
from .page import tree_markup

__all__ = ["Forest", "draw_forest", "draw_tree", "tree_markup"]
