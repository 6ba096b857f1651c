"""Whether numbers rise or fall together, by their ranks."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import correlation

from ..plan import Verdict

_CLEAR = 2.0  # a rank correlation times the root of its cases less one, beyond chance at 95 %


def decide_trend(trend: float, cases: int, *, falls: bool) -> Verdict:
    """Whether a rank correlation over so many cases is clearly negative, or positive, or neither."""
    strength = trend * (cases - 1) ** 0.5 * (-1 if falls else 1)
    return "confirmed" if strength >= _CLEAR else "not confirmed" if strength <= -_CLEAR else "open"


def rank_correlation(first: Sequence[float | int], second: Sequence[float | int]) -> float:
    """Spearman's, ties at their mean rank; 0 where one of them does not vary."""
    if len(set(first)) < 2 or len(set(second)) < 2:
        return 0.0
    return correlation(_ranks(first), _ranks(second))


def _ranks(values: Sequence[float | int]) -> list[float]:
    return [sum(other < value for other in values) + (values.count(value) + 1) / 2 for value in values]
