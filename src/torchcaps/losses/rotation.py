"""Losses of rotations as unit quaternions (w, x, y, z); q and -q are the same rotation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor

from torchcaps.core import PoseOutput, PoseTarget, UserError, group_table, hamilton, require_labels

from .api import LOSSES, Loss
from .spread import margin_by_epoch, spread_loss


def rotation_loss(predicted: Float[Tensor, "batch 4"], true: Float[Tensor, "batch 4"]) -> Float[Tensor, ""]:
    """Mean of 1 - <p, q>^2, which is sin^2 of half the angle between two rotations.

    It has a finite gradient everywhere, unlike the angle itself.
    """
    return (1 - (predicted * true).sum(-1).square()).mean()


def render_loss(predicted: Float[Tensor, "batch 4"], true: Float[Tensor, "batch 4"]) -> Float[Tensor, ""]:
    """Mean of 1 - |<p, q>|, the loss of the thesis; 1 - cos of half the angle."""
    return (1 - (predicted * true).sum(-1).abs()).mean()


def nearest_symmetric(
    predicted: Float[Tensor, "batch 4"], true: Float[Tensor, "batch 4"], group: Float[Tensor, "#batch n 4"]
) -> Float[Tensor, "batch 4"]:
    """Of the rotations that look like the true one, q g for g in the group, the nearest to the predicted."""
    alike = hamilton(true.unsqueeze(1), group.to(true))
    nearest = (alike * predicted.detach().unsqueeze(1)).sum(-1).abs().argmax(1)
    return alike.gather(1, nearest[:, None, None].expand(-1, 1, 4)).squeeze(1)


def rotations_of(output: PoseOutput, chosen: Int[Tensor, " batch"]) -> Float[Tensor, "batch 4"]:
    """The rotations of the chosen classes."""
    index = chosen[:, None, None].expand(-1, 1, 4)  # indexing with a range would copy it to the device
    return output.rotations.gather(1, index).squeeze(1)


_FORMS = {"square": rotation_loss, "render": render_loss}


@LOSSES.register("spread_rotation")
@dataclass(frozen=True, kw_only=True)
class SpreadRotationLoss(Loss[PoseOutput, PoseTarget]):
    """Spread loss of the class plus the weighted rotation loss of the true class's capsule.

    Attributes:
        rotation_weight: Weight of the rotation loss.
        form: "square" is 1 - <p, q>^2, whose gradient is finite everywhere; "render" is the thesis's
            1 - |<p, q>|.
        symmetries: How the object of each class looks the same when turned: "none", "cube", "tetrahedron", or
            generators "w x y z; w x y z". Metrics then forgive these turns; without any, no class has one.
        forgive: Whether the loss forgives them too.
    """

    task: ClassVar[str] = "pose"
    rotation_weight: float = 0.1
    form: Literal["square", "render"] = "square"
    symmetries: tuple[str, ...] = ()
    forgive: bool = False

    def __post_init__(self) -> None:
        if self.rotation_weight < 0:
            raise UserError(f"loss.rotation_weight must not be negative, got {self.rotation_weight}")
        if self.forgive and not self.symmetries:
            raise UserError("loss.forgive needs loss.symmetries: what should be forgiven?")
        if self.symmetries:
            group_table(self.symmetries)  # raises where one is misspelt

    @property
    def knows_symmetries(self) -> bool:
        """Whether the object of some class looks the same when turned."""
        return any(spec.strip() != "none" for spec in self.symmetries)

    def groups(self, labels: Int[Tensor, " batch"], classes: int) -> Float[Tensor, "batch n 4"] | None:
        """The symmetries of the objects of these classes; None where no class has any."""
        if not self.symmetries:
            return None
        if len(self.symmetries) != classes:
            raise UserError(f"loss.symmetries names {len(self.symmetries)} classes, there are {classes}")
        return _table_on(self.symmetries, labels.device)[labels]

    def __call__(self, output: PoseOutput, targets: PoseTarget, /, **scheduled: Tensor) -> Float[Tensor, ""]:
        """The loss of a batch."""
        classes = output.activations.shape[1]
        require_labels(output.activations, targets.labels, classes)
        own = rotations_of(output, targets.labels)
        spread = spread_loss(output.activations, targets.labels, margin=scheduled["margin"])
        groups = self.groups(targets.labels, classes) if self.forgive else None
        true = targets.rotations if groups is None else nearest_symmetric(own, targets.rotations, groups)
        return spread + self.rotation_weight * _FORMS[self.form](own, true)

    def schedule(self, epoch: int | float) -> Mapping[str, float]:
        """The margin of an epoch."""
        return {"margin": margin_by_epoch(epoch)}


_TABLES: dict[tuple[tuple[str, ...], torch.device], Tensor] = {}


def _table_on(symmetries: tuple[str, ...], device: torch.device) -> Tensor:
    """The groups on a device, copied there once: a captured step must not copy."""
    key = (symmetries, device)
    if key not in _TABLES:
        _TABLES[key] = group_table(symmetries).to(device)
    return _TABLES[key]
