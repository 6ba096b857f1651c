"""A measured value with its interval, as charts take it."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from statistics import fmean
from typing import NamedTuple

from torchcaps.core import Number


class Measured(NamedTuple):
    """A mean over seeds, an interval around it where there were several, and words beside it."""

    value: Number
    low: Number | None = None
    high: Number | None = None
    words: str = ""

    @property
    def interval(self) -> tuple[Number, Number]:
        """How far it reaches below and above the value."""
        if self.low is None or self.high is None:
            return 0.0, 0.0
        return self.value - self.low, self.high - self.value


def measure_seeds(values: Sequence[Number]) -> Measured:
    """The mean over seeds, from the lowest to the highest of them."""
    if len(values) == 1:
        return Measured(values[0])
    return Measured(fmean(values), min(values), max(values))


def with_deviation(
    mean: Number, deviation: Number | None, words: str = "", *, most: Number = inf
) -> Measured:
    """A mean and one standard deviation to both sides, from zero to `most`; None where there was one seed."""
    if deviation is None:
        return Measured(mean, words=words)
    return Measured(mean, max(mean - deviation, 0.0), min(mean + deviation, most), words)
