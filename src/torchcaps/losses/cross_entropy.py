"""Cross-entropy of class probabilities."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F

from torchcaps.core import CapsuleOutput, UserError, require_scores

from .api import LOSSES, Loss


def cross_entropy_loss(
    probabilities: Float[Tensor, "batch classes"],
    labels: Int[Tensor, " batch"],
    *,
    label_smoothing: float = 0.0,
) -> Float[Tensor, ""]:
    """Mean negative logarithm of the probability of the true class.

    Expects probabilities, not logits; one that has vanished counts as the smallest number of its type. With
    `label_smoothing` the true class keeps that much less, and all classes share it evenly.
    """
    require_scores(probabilities, labels)
    smallest = torch.finfo(probabilities.dtype).tiny
    logarithms = probabilities.clamp_min(smallest).log()
    loss = F.nll_loss(logarithms, labels)
    if not label_smoothing:
        return loss
    return (1 - label_smoothing) * loss - label_smoothing * logarithms.mean()


@LOSSES.register("cross_entropy")
@dataclass(frozen=True, kw_only=True)
class CrossEntropyLoss(Loss[CapsuleOutput, Tensor]):
    """`cross_entropy_loss` with its settings.

    Attributes:
        label_smoothing: Share of each label that is spread over all classes.
    """

    task: ClassVar[str] = "classification"
    label_smoothing: float = 0.0

    def __post_init__(self) -> None:
        if not 0 <= self.label_smoothing < 1:
            raise UserError(f"loss.label_smoothing must lie in [0, 1), got {self.label_smoothing}")

    def __call__(
        self, output: CapsuleOutput, labels: Int[Tensor, " batch"], /, **_: Tensor
    ) -> Float[Tensor, ""]:
        """The loss of the class activations, which are probabilities."""
        return cross_entropy_loss(output.activations, labels, label_smoothing=self.label_smoothing)
