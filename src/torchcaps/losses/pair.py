"""Losses of two classes that are there at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F

from torchcaps.core import CapsuleOutput, mark_labels, require_scores

from .api import LOSSES, Loss
from .margin import MarginLoss, to_margins


def pair_targets(
    activations: Float[Tensor, "batch classes"], labels: Int[Tensor, "batch 2"]
) -> Float[Tensor, "batch classes"]:
    """One at both classes of each image, zero elsewhere."""
    for column in labels.unbind(1):
        require_scores(activations, column)
    return mark_labels(labels, activations)


def pair_margin_loss(
    activations: Float[Tensor, "batch classes"],
    labels: Int[Tensor, "batch 2"],
    *,
    present: float = 0.9,
    absent: float = 0.1,
    absent_weight: float = 0.5,
) -> Float[Tensor, ""]:
    """The margin loss with two classes present (Sabour 2017, section 6)."""
    return to_margins(activations, pair_targets(activations, labels), present, absent, absent_weight)


@LOSSES.register("pair_margin")
@dataclass(frozen=True, kw_only=True)
class PairMarginLoss(MarginLoss):
    """`pair_margin_loss` with its settings.

    Attributes:
        present: Length that the capsules of both classes should reach.
        absent: Length that the others should stay below.
        absent_weight: Weight of the others.
    """

    task: ClassVar[str] = "overlap"

    def __call__(
        self, output: CapsuleOutput, labels: Int[Tensor, "batch 2"], /, **_: Tensor
    ) -> Float[Tensor, ""]:
        """The loss of the class capsules' lengths."""
        return pair_margin_loss(
            output.activations,
            labels,
            present=self.present,
            absent=self.absent,
            absent_weight=self.absent_weight,
        )


@LOSSES.register("pair_cross_entropy")
@dataclass(frozen=True, kw_only=True)
class PairCrossEntropyLoss(Loss[CapsuleOutput, Tensor]):
    """Binary cross-entropy of each class, summed: for networks without capsules, whose poses are logits."""

    task: ClassVar[str] = "overlap"

    def __call__(
        self, output: CapsuleOutput, labels: Int[Tensor, "batch 2"], /, **_: Tensor
    ) -> Float[Tensor, ""]:
        """The loss of the logits."""
        logits = output.poses[:, :, 0].float()
        errors = F.binary_cross_entropy_with_logits(logits, pair_targets(logits, labels), reduction="none")
        return errors.sum(1).mean()
