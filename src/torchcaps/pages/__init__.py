"""What people read: the demonstration, explained images, and runs side by side."""

from .compare import describe_run, rem_recipe, train_with_rem
from .demo import run_demo
from .explain import explain_images
from .shrinking import shrink_and_measure

__all__ = [
    "describe_run",
    "explain_images",
    "rem_recipe",
    "run_demo",
    "shrink_and_measure",
    "train_with_rem",
]
