"""Suites: how runs fare when images turn, overlap, are seen from elsewhere, spoiled or photographed."""

from . import affine, corruption, overlap, partwhole, photographs, turns, viewpoint
from .api import SUITES, Material, Measurement, measure_run
from .compare import as_json, draw_suite, table_of
from .ground_truth import measure_truth
from .overlap import overlay_pairs
from .partwhole import draw_test_images
from .viewpoint import views_of

__all__ = [
    "SUITES",
    "Material",
    "Measurement",
    "affine",
    "as_json",
    "corruption",
    "draw_suite",
    "draw_test_images",
    "measure_run",
    "measure_truth",
    "overlap",
    "overlay_pairs",
    "partwhole",
    "photographs",
    "table_of",
    "turns",
    "viewpoint",
    "views_of",
]
