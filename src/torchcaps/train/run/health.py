"""The health of a network's capsules on a few images of a split."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor

from torchcaps.data import Examples
from torchcaps.inspection import HealthReport, inspect

from ..pipeline import Pipeline
from .run import Loader, Run, load_split

_IMAGES = 64


def health_inputs(data: Examples, pipeline: Pipeline) -> Tensor:
    """A few images as the network gets them, evenly spread over the split: the same ones every time."""
    spread = torch.linspace(0, len(data) - 1, min(_IMAGES, len(data)), device=data.device)
    return pipeline.for_evaluation(data.images[spread.long()]).inputs


def inspect_run(
    run: Run,
    split: str = "test",
    *,
    data_name: str | None = None,
    data_dir: Path | None = None,
    load: Loader = load_split,
) -> HealthReport:
    """How every routed layer of a run fares on one split, of its own dataset or another, read by `load`."""
    found = load(run, split, data_name=data_name, data_dir=data_dir)
    return inspect(run.model, health_inputs(*found))
