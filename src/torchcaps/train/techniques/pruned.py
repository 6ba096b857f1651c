"""Pruned training: LOBSTER pulls weights to zero, and after an epoch cuts what validation does not miss."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import nn

from torchcaps.core import Metric, Plain
from torchcaps.data import Examples
from torchcaps.prune import (
    Lobster,
    Plateau,
    Pull,
    count_sparsity,
    measure_units,
    prunable_weights,
    prune_to_loss,
)

from ..tasks import Evaluation
from .api import Technique

if TYPE_CHECKING:
    from ..loop.kept import KeptRun

# A search starts this much above the largest threshold found so far and goes down: with few validation images
# the loss rises and falls by chance, and a search from below would stop at the first rise.
_HEADROOM = 2.0
_NEARLY_ALL = 0.9  # of the weights that were left, in one search


@dataclass
class PruningState(Plateau):
    """What the next search needs to know of the last ones; the zeros themselves are in the weights."""

    threshold: float = 0.0  # the largest so far
    evaluations: int = 0  # of all searches


class LastSearch(NamedTuple):
    """What the search after an epoch found, and how often it evaluated; nothing where there was none."""

    threshold: float = 0.0
    evaluations: int = 0
    share: float = 0.0  # of the weights that were left, cut at once


class PrunedTraining(Technique):
    """Decides after each epoch whether to prune, searches the threshold and keeps account."""

    keeps_last = True  # the last weights are the sparsest

    def __init__(self, settings: Lobster, network: nn.Module, leading: Metric) -> None:
        self.settings, self._network, self._leading = settings, network, leading
        self._pull = Pull(prunable_weights(network, settings.layers), settings)
        self.past = PruningState()
        self._last = LastSearch()

    def start_epoch(self, epoch: int) -> None:
        """Set the strength of the pull; the weights that are zero now stay zero."""
        self._pull.start_epoch(epoch)

    def before_update(self) -> None:
        """Pull insensitive weights to zero."""
        self._pull.shrink()

    def after_update(self) -> None:
        """Keep cut weights at zero."""
        self._pull.keep_zeros()

    def after_validation(self, run: KeptRun, validation: Evaluation) -> Evaluation:
        """Prune if it is time, and return the evaluation of the weights as they are then."""
        is_due = self.past.is_reached(validation.loss, self.settings.patience)
        self._last = LastSearch()
        return self._prune(run, validation) if is_due and self._is_good_enough(validation) else validation

    def _is_good_enough(self, validation: Evaluation) -> bool:
        least = self.settings.min_metric
        return least is None or not self._leading.is_better(least, validation.value_of(self._leading))

    def _prune(self, run: KeptRun, validation: Evaluation) -> Evaluation:
        whole = run.session.splits.validation
        part = _spread(whole, self.settings.search_images)
        cost = self._cost(validation if part is whole else run.session.evaluate(part))
        cut = prune_to_loss(
            measure_units(self._network, self.settings),
            lambda: self._cost(run.session.evaluate(part)),
            limit=cost + self.settings.tolerance * abs(cost),
            start=_HEADROOM * self.past.threshold,
            may_cut_all=False,
        )
        evaluations = cut.evaluations + (part is not whole)
        self.past.evaluations += evaluations
        self.past.threshold = max(cut.threshold, self.past.threshold)
        self._last = LastSearch(cut.threshold, evaluations, cut.share)
        return run.session.evaluate(whole) if cut.pruned else validation

    def _cost(self, found: Evaluation) -> float:
        """What a cut must not raise."""
        if self.settings.judge == "loss":
            return found.loss
        value = found.value_of(self._leading)
        return -value if self._leading.better == "higher" else value

    def row(self) -> Plain:
        """Sparsity, and what the search of the epoch found."""
        sparsity, last = count_sparsity(self._network, self.settings.layers), self._last
        return {
            "sparsity": sparsity["sparsity"],
            "sparsity_total": sparsity["sparsity_total"],
            "threshold": last.threshold,
            "search_evaluations": last.evaluations,
        }

    def findings(self) -> list[str]:
        """A cut that ends a network which has hardly begun to learn: it loses nothing yet."""
        if self._last.share < _NEARLY_ALL:
            return []
        return [
            f"pruning cut nearly all at once: {self._last.share:.1%} of what was left, for good, "
            "because a network that has hardly learnt does not miss them; pruning.patience=3 waits until the "
            "loss no longer falls"
        ]

    def metrics(self) -> Plain:
        """Sparsity and the evaluations of all searches."""
        sparsity = count_sparsity(self._network, self.settings.layers)
        return {**sparsity, "search_evaluations": self.past.evaluations}

    def state(self) -> Plain:
        """What the searches found."""
        return asdict(self.past)

    def restore(self, state: Plain) -> None:
        """Go on from a checkpoint."""
        self.past = PruningState(**state)


def _spread(examples: Examples, count: int) -> Examples:
    if not 0 < count < len(examples):
        return examples
    return examples.subset(torch.linspace(0, len(examples) - 1, count).long())
