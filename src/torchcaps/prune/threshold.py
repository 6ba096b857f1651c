"""The largest threshold below which everything can be cut without raising the validation loss."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from .groups import Units

# A search ends once the undecided units are this share of all: finer is below what an epoch changes.
_RESOLUTION = 1e-3


class Cut(NamedTuple):
    """What a search found, and has already done to the weights."""

    threshold: float  # units of at most this norm are zero now; 0 where nothing could be cut
    pruned: int  # weights that were not zero before
    share: float  # that they are of all weights that were not zero before
    evaluations: int


@torch.no_grad()
def prune_to_loss(
    units: Units,
    loss_of: Callable[[], float],
    limit: float,
    *,
    start: float = 0.0,
    max_evaluations: int = 20,
    may_cut_all: bool = True,
) -> Cut:
    """Zero all units up to the largest norm for which `loss_of()` stays at or below `limit`.

    The first candidate is `start`, or the mean norm; from a start that earlier searches suggest, candidates
    double or halve until the answer is between two of them. The rest is a bisection over the units in
    between, which ends when none, or one in a thousand, is undecided. Where the loss is not monotonous in
    the threshold, the result is one that keeps the limit, not always the largest. All other weights are left
    with the bits they had, also when `loss_of` raises.

    Without `may_cut_all` nothing is cut where no candidate broke the limit, up to all units: such a loss does
    not depend on the weights, as that of a network that has not begun to learn, and a cut would end it.
    """
    originals = [weight.detach().clone() for weight in units.weights]
    before = _count_nonzero(originals)
    search = _Bisection(units.each, start)
    evaluations, threshold = 0, 0.0
    try:
        while evaluations < max_evaluations and not search.is_decided:
            candidate = search.propose()
            _zero_up_to(units, originals, candidate)
            evaluations += 1
            search.learn(candidate, is_good=loss_of() <= limit)
        threshold = search.best if may_cut_all or search.met_limit else 0.0
    finally:
        _zero_up_to(units, originals, threshold)
    pruned = before - _count_nonzero(list(units.weights))
    return Cut(threshold, pruned, pruned / max(before, 1), evaluations)


class _Bisection:
    """Which thresholds are known to be good or bad, and which to try next."""

    def __init__(self, norms: Tensor, start: float) -> None:
        self._undecided = norms[norms > 0]
        self._resolution = int(_RESOLUTION * len(norms))
        self.best = 0.0
        self.met_limit = False  # a candidate was too large
        mean = float(self._undecided.double().mean()) if len(self._undecided) else 0.0
        self._guess: float | None = start or mean  # None: bisect
        self._is_warm = start > 0
        self._last: bool | None = None  # how the last guess turned out

    @property
    def is_decided(self) -> bool:
        return len(self._undecided) <= self._resolution

    def propose(self) -> float:
        """The norm of a unit that is still undecided."""
        if self._guess is None:
            return float(self._undecided.median())
        below = self._undecided[self._undecided <= self._guess]
        return float(below.max() if len(below) else self._undecided.min())

    def learn(self, candidate: float, *, is_good: bool) -> None:
        if is_good:
            self.best = candidate
            self._undecided = self._undecided[self._undecided > candidate]
        else:
            self.met_limit = True
            self._undecided = self._undecided[self._undecided < candidate]
        self._move_guess(is_good)

    def _move_guess(self, is_good: bool) -> None:
        if self._guess is None or not self._is_warm or self._last not in (None, is_good):
            self._guess = None  # no scale is known without a start; after both outcomes, bisect
            return
        self._last = is_good
        self._guess *= 2 if is_good else 0.5


def _zero_up_to(units: Units, originals: list[Tensor], threshold: float) -> None:
    for weight, norm, original in zip(units.weights, units.norms, originals, strict=True):
        weight.copy_(original.masked_fill(norm <= threshold, 0.0))


def _count_nonzero(weights: list[Tensor]) -> int:
    return int(torch.stack([weight.count_nonzero() for weight in weights]).sum())
