"""Lung nodules: CT volumes and their annotations, from published files to what networks learn from."""

from .evaluate import evaluate_prepared
from .measure import dice
from .report import bootstrap_mean
from .scan import require_scan, segment_scan
from .volume import Volume, read_volume, window
from .whole_scans import choose_scans, evaluate_scans

__all__ = [
    "Volume",
    "bootstrap_mean",
    "choose_scans",
    "dice",
    "evaluate_prepared",
    "evaluate_scans",
    "read_volume",
    "require_scan",
    "segment_scan",
    "window",
]
