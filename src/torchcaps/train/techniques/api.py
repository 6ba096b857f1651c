"""Training techniques: what a recipe adds to plain training, called at named places of the loop."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

from torchcaps.core import Plain
from torchcaps.data import Examples

from ..tasks import Evaluation

if TYPE_CHECKING:
    from ..loop.kept import KeptRun  # it imports this module


class FinalResults(TypedDict, total=False):
    """What result.json says beside metrics."""

    annealing: list[Plain]  # each number of iterations that was tried, with its metrics


class Technique:
    """Plain training, which adds nothing; a technique overrides the verbs that it needs."""

    keeps_last: bool = False  # the run ends with its last weights instead of its best

    def start_epoch(self, epoch: int) -> None:
        """An epoch begins."""

    def before_update(self) -> None:
        """The gradients of a step are there; the optimizer comes next. It may be captured in a CUDA graph."""

    def after_update(self) -> None:
        """The optimizer has moved the weights. It may be captured in a CUDA graph."""

    def after_validation(self, run: KeptRun, validation: Evaluation) -> Evaluation:
        """Called when an epoch was validated; returns the evaluation of the weights that it ends with."""
        del run
        return validation

    def after_epoch(self, run: KeptRun, epoch: int, validation: Evaluation) -> None:
        """An epoch is over, and kept if it was the best."""

    def finish(self, run: KeptRun, test: Examples) -> FinalResults:
        """Called when training is over; returns what result.json says beside metrics."""
        del run, test
        return {}

    @property
    def is_done(self) -> bool:
        """Whether more epochs would change nothing."""
        return False

    def row(self) -> Plain:
        """What the line of an epoch says about the technique."""
        return {}

    def findings(self) -> list[str]:
        """What in the epoch that just ended a user should know about, each as "problem: details"."""
        return []

    def metrics(self) -> Plain:
        """What the metrics of result.json say about the technique."""
        return {}

    def header(self) -> Plain:
        """What a file of weights must say so that they can be used."""
        return {}

    def adopt(self, header: Plain) -> None:
        """The network got weights from a file with this header."""

    def state(self) -> Plain:
        """Plain data for a checkpoint."""
        return {}

    def restore(self, state: Plain) -> None:
        """Go on from a checkpoint."""
