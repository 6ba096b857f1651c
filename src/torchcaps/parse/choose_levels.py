"""The smallest number of levels that keeps the accuracy (thesis, Quantization)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from torchcaps.core import UserError

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
        candidates: Tried from the smallest on, up to the first that keeps the accuracy.
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
