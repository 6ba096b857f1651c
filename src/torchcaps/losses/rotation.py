"""Losses of rotations as unit quaternions (w, x, y, z); q and -q are the same rotation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from torchcaps.core.errors import UserError
from torchcaps.core.labels import require_labels
from torchcaps.core.types import PoseOutput, PoseTarget

from .api import LOSSES, Loss
from .spread import margin_by_epoch, spread_loss


def rotation_loss(predicted: Float[Tensor, "batch 4"], true: Float[Tensor, "batch 4"]) -> Float[Tensor, ""]:
    """Mean of 1 - <p, q>^2, which is sin^2 of half the angle between two rotations.

    It has a finite gradient everywhere, unlike the angle itself.
    """
    return (1 - (predicted * true).sum(-1).square()).mean()


def rotation_angle(
    predicted: Float[Tensor, "*batch 4"], true: Float[Tensor, "*batch 4"]
) -> Float[Tensor, "*batch"]:
    """The angle of the rotation between two, in degrees, from 0 to 180; for measuring, not for training."""
    sign = torch.where((predicted * true).sum(-1, keepdim=True) < 0, -1.0, 1.0)
    apart = torch.linalg.vector_norm(predicted - sign * true, dim=-1)
    along = torch.linalg.vector_norm(predicted + sign * true, dim=-1)
    return torch.rad2deg(4 * torch.atan2(apart, along))  # acos would lose half of the digits of small angles


@LOSSES.register("spread_rotation")
@dataclass(frozen=True, kw_only=True)
class SpreadRotationLoss(Loss[PoseOutput, PoseTarget]):
    """Spread loss of the class plus the weighted rotation loss of the true class's capsule.

    Attributes:
        rotation_weight: Of the rotation loss.
    """

    task: ClassVar[str] = "pose"
    rotation_weight: float = 0.1

    def __post_init__(self) -> None:
        if self.rotation_weight < 0:
            raise UserError(f"loss.rotation_weight must not be negative, got {self.rotation_weight}")

    def __call__(self, output: PoseOutput, targets: PoseTarget, /, **scheduled: Tensor) -> Float[Tensor, ""]:
        """The loss of a batch."""
        require_labels(output.activations, targets.labels, output.activations.shape[1])
        own = output.rotations[torch.arange(len(targets.labels)), targets.labels]
        spread = spread_loss(output.activations, targets.labels, margin=scheduled["margin"])
        return spread + self.rotation_weight * rotation_loss(own, targets.rotations)

    def schedule(self, epoch: int | float) -> Mapping[str, float]:
        """The margin of an epoch."""
        return {"margin": margin_by_epoch(epoch)}
