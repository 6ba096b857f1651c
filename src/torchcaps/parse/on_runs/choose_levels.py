"""The number of levels for a run, chosen on its validation images."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import torch

from torchcaps.train import Run, load_labelled

from ..choose_levels import CANDIDATES, ChosenLevels, choose_levels
from .analyse import count_hits


@torch.no_grad()
def choose_levels_of_run(
    run: Run,
    *,
    candidates: Iterable[int] = CANDIDATES,
    tolerance: float = 0.001,
    data_dir: Path | None = None,
) -> ChosenLevels:
    """`choose_levels` by the validation images of a run, the same number for all of its layers."""
    data, pipeline = load_labelled(run, "validation", data_dir=data_dir)

    def evaluate(levels: int | None) -> float:
        return count_hits(run.model, data, pipeline, levels=levels) / len(data)

    return choose_levels(evaluate, candidates, tolerance)
