"""Pruning within a run: after an epoch, cut what the validation loss does not miss."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from math import inf
from typing import Any

import torch

from torchcaps.data import LabelledImages
from torchcaps.prune import Lobster, Plateau, count_sparsity, measure_units, prune_to_loss

from ..evaluate import Evaluation
from ..session import Session

# A search starts this much above the largest threshold found so far and goes down: with few validation images
# the loss rises and falls by chance, and a search from below would stop at the first rise.
_HEADROOM = 2.0


@dataclass
class PruningState:
    """What the next search needs to know of the last ones; the zeros themselves are in the weights."""

    threshold: float = 0.0  # the largest so far
    best_loss: float = inf
    waited: int = 0
    evaluations: int = 0  # of all searches


class Pruner:
    """Decides after each epoch whether to prune, searches the threshold and keeps account."""

    def __init__(
        self, session: Session, settings: Lobster, evaluate: Callable[[LabelledImages], Evaluation]
    ) -> None:
        self.session, self.settings, self._evaluate = session, settings, evaluate
        self.past = PruningState()
        self._images = _spread(session.splits.validation, settings.search_images)
        self._last: dict[str, Any] = {}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a checkpoint."""
        self.past = PruningState(**state)

    def state(self) -> dict[str, Any]:
        """Plain data for a checkpoint."""
        return asdict(self.past)

    def after_epoch(self, validation: Evaluation) -> Evaluation:
        """Prune if it is time; the evaluation of the weights as they are then."""
        past = self.past
        plateau = Plateau(self.settings.patience, past.best_loss, past.waited)
        is_due = plateau.is_reached(validation.loss)
        past.best_loss, past.waited = plateau.best_loss, plateau.waited
        self._last = {"threshold": 0.0, "search_evaluations": 0}
        if not is_due or validation.accuracy < self.settings.min_accuracy:
            return validation
        return self._prune(validation)

    def _prune(self, validation: Evaluation) -> Evaluation:
        whole = self.session.splits.validation
        loss = validation.loss if self._images is whole else self._loss()
        cut = prune_to_loss(
            measure_units(self.session.network, self.settings),
            self._loss,
            limit=self._shared(loss) * (1 + self.settings.tolerance),
            start=_HEADROOM * self.past.threshold,
        )
        evaluations = cut.evaluations + (self._images is not whole)
        self.past.evaluations += evaluations
        self.past.threshold = max(cut.threshold, self.past.threshold)
        self._last = {"threshold": cut.threshold, "search_evaluations": evaluations}
        return self._evaluate(whole) if cut.pruned else validation

    def _loss(self) -> float:
        return self._shared(self._evaluate(self._images).loss)

    def _shared(self, loss: float) -> float:
        """The loss of the first process: all must cut the same weights."""
        return float(self.session.fabric.broadcast(loss))

    def row(self) -> dict[str, Any]:
        """What this epoch's line of metrics says about pruning."""
        sparsity = count_sparsity(self.session.network, self.settings.layers)
        return {"sparsity": sparsity["sparsity"], "sparsity_total": sparsity["sparsity_total"], **self._last}

    def metrics(self) -> dict[str, Any]:
        """What result.json says about pruning."""
        sparsity = count_sparsity(self.session.network, self.settings.layers)
        return {**sparsity, "search_evaluations": self.past.evaluations}


def _spread(data: LabelledImages, count: int) -> LabelledImages:
    if not 0 < count < len(data):
        return data
    return data.subset(torch.linspace(0, len(data) - 1, count).long())
