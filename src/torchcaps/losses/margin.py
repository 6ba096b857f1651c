"""Margin loss on capsule lengths."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from jaxtyping import Float, Int
from torch import Tensor

from torchcaps.core import CapsuleOutput, UserError, mark_labels, require_scores

from .api import LOSSES, Loss


def margin_loss(
    activations: Float[Tensor, "batch classes"],
    labels: Int[Tensor, " batch"],
    *,
    present: float = 0.9,
    absent: float = 0.1,
    absent_weight: float = 0.5,
) -> Float[Tensor, ""]:
    """Squared distance of lengths to their margins, summed over classes (Sabour 2017, eq. 4).

    Expects lengths in [0, 1]; a softmax before it would make the margins meaningless.

    Examples:
        >>> lengths = torch.tensor([[0.95, 0.05], [0.3, 0.2]])  # the first image is right, the second wrong
        >>> margin_loss(lengths, torch.tensor([0, 1]))
        tensor(0.2550)
    """
    require_scores(activations, labels)
    return to_margins(activations, mark_labels(labels, activations), present, absent, absent_weight)


def to_margins(
    activations: Float[Tensor, "batch classes"],
    target: Float[Tensor, "batch classes"],
    present: float,
    absent: float,
    absent_weight: float,
) -> Float[Tensor, ""]:
    """The margin loss of lengths whose target is one where a class is present, and zero elsewhere."""
    too_short = (present - activations).relu().square()
    too_long = (activations - absent).relu().square()
    return (target * too_short + absent_weight * (1 - target) * too_long).sum(1).mean()


@LOSSES.register("margin")
@dataclass(frozen=True, kw_only=True)
class MarginLoss(Loss[CapsuleOutput, Tensor]):
    """`margin_loss` with its settings.

    Attributes:
        present: Length that the capsule of the true class should reach.
        absent: Length that the others should stay below.
        absent_weight: Weight of the others.
    """

    task: ClassVar[str] = "classification"
    present: float = 0.9
    absent: float = 0.1
    absent_weight: float = 0.5

    def __post_init__(self) -> None:
        if self.absent_weight < 0:
            raise UserError(f"loss.absent_weight must not be negative, got {self.absent_weight}")

    def __call__(
        self, output: CapsuleOutput, labels: Int[Tensor, " batch"], /, **_: Tensor
    ) -> Float[Tensor, ""]:
        """The loss of the class capsules' lengths."""
        return margin_loss(
            output.activations,
            labels,
            present=self.present,
            absent=self.absent,
            absent_weight=self.absent_weight,
        )
