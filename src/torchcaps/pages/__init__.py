"""What people read: the demonstration, explained images, and runs side by side."""

from .compare import RunSummary, summarise_run, with_rem
from .demo import Demo, run_demo
from .explained import Explained, explain
from .image_files import explain_images
from .shrinking import measure_footprints, shrink_and_measure
from .true_trees import TrueTrees

__all__ = [
    "Demo",
    "Explained",
    "RunSummary",
    "TrueTrees",
    "explain",
    "explain_images",
    "measure_footprints",
    "run_demo",
    "shrink_and_measure",
    "summarise_run",
    "with_rem",
]
