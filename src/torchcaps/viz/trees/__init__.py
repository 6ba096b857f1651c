"""Drawings of parse trees: one geometry, as a figure and as a page."""
