"""Spread loss on activations, and the growth of its margin."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from jaxtyping import Float, Int
from torch import Tensor

from torchcaps.core import CapsuleOutput, mark_labels, require_scores

from .api import LOSSES, Loss


def spread_loss(
    activations: Float[Tensor, "batch classes"],
    labels: Int[Tensor, " batch"],
    *,
    margin: float | Tensor = 0.9,
) -> Float[Tensor, ""]:
    """How far wrong classes come within `margin` of the true one, squared and summed (Hinton 2018, eq. 3)."""
    require_scores(activations, labels)
    true = activations.gather(1, labels.unsqueeze(1))
    others = 1 - mark_labels(labels, activations)
    return ((margin - (true - activations)).relu().square() * others).sum(1).mean()


FINAL_MARGIN = 0.9


def margin_by_epoch(epoch: int | float) -> float:
    """Margin of the thesis: 0.2 in epoch 0, then 0.1 more each epoch up to 0.9."""
    return min(0.2 + 0.1 * epoch, FINAL_MARGIN)


@LOSSES.register("spread")
@dataclass(frozen=True, kw_only=True)
class SpreadLoss(Loss[CapsuleOutput, Tensor]):
    """`spread_loss` with the margin of the thesis, which grows with the epochs."""

    task: ClassVar[str] = "classification"

    def __call__(
        self, output: CapsuleOutput, labels: Int[Tensor, " batch"], /, **scheduled: Tensor
    ) -> Float[Tensor, ""]:
        """The loss of the class activations."""
        return spread_loss(output.activations, labels, margin=scheduled["margin"])

    def schedule(self, epoch: int | float) -> Mapping[str, float]:
        """The margin of an epoch."""
        return {"margin": margin_by_epoch(epoch)}
