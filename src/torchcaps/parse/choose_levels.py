"""How few levels will do (thesis, Quantization)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

import torch

from torchcaps.core.errors import UserError
from torchcaps.train import Run, load_split_for

from .analyse import count_hits

CANDIDATES = (*range(2, 22), 26, 31, 41, 51, 64, 101, 201)


class ChosenLevels(NamedTuple):
    """The smallest number of levels that loses little enough, and what was tried on the way to it."""

    levels: int
    accuracy: float
    accuracy_without: float  # of the network as it is
    tried: dict[int, float]


def choose_levels(
    evaluate: Callable[[int | None], float], candidates: Iterable[int], tolerance: float = 0.0
) -> ChosenLevels:
    """The smallest number of levels with which accuracy does not deteriorate (thesis, Quantization).

    Args:
        evaluate: Accuracy with so many levels; None means without quantization.
        candidates: Tried from the smallest on, up to the first that will do.
        tolerance: Accuracy that may be lost.
    """
    if tolerance < 0:
        raise UserError(f"tolerance must not be negative, got {tolerance}")
    without = evaluate(None)
    tried: dict[int, float] = {}
    for levels in sorted(set(candidates)):
        tried[levels] = evaluate(levels)
        if tried[levels] >= without - tolerance:
            return ChosenLevels(levels, tried[levels], without, tried)
    if not tried:
        raise UserError("there are no numbers of levels to choose from")
    best = max(tried, key=lambda levels: tried[levels])
    raise UserError(
        f"no number of levels keeps the accuracy of {without:.4f} within {tolerance:g}; the best of "
        f"{', '.join(map(str, tried))} is {best}, with {tried[best]:.4f}"
    )


@torch.no_grad()
def choose_levels_of_run(
    run: Run,
    *,
    candidates: Iterable[int] = CANDIDATES,
    tolerance: float = 0.001,
    data_dir: Path | None = None,
) -> ChosenLevels:
    """`choose_levels` by the validation images of a run, the same number for all of its layers."""
    data, pipeline = load_split_for(run, "validation", data_dir=data_dir)

    def evaluate(levels: int | None) -> float:
        return count_hits(run.model, data, pipeline, levels=levels) / len(data)

    return choose_levels(evaluate, candidates, tolerance)
