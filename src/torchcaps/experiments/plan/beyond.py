"""Experiments that belong to no chapter of the thesis."""

from __future__ import annotations

from functools import partial

from .experiment import Experiment

BEYOND = "beyond the thesis"  # what stands in place of a chapter
# the images come with the package, and networks learn from them in minutes
on_mnist5k = partial(Experiment, chapter=BEYOND, data=(), gpu_minutes=5, seeds=3)
