"""From patients to a folder that networks learn from: sources, regions, splits by patient."""

from .prepare import MANIFEST, REPORT, dataset_name, prepare
from .regions import LEAST_PIXELS, SIDE, Cut, Region, draw_offset
from .sources import Found, Marked, Scans, find_patients, find_scans, require_apart
from .splits import fold_name, share_name, split_patients

__all__ = [
    "LEAST_PIXELS",
    "MANIFEST",
    "REPORT",
    "SIDE",
    "Cut",
    "Found",
    "Marked",
    "Region",
    "Scans",
    "dataset_name",
    "draw_offset",
    "find_patients",
    "find_scans",
    "fold_name",
    "prepare",
    "require_apart",
    "share_name",
    "split_patients",
]
