"""Losses of segmentation: soft Dice, weighted cross-entropy, and their weighted sum."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float, Integer
from torch import Tensor
from torch.nn import functional as F

from torchcaps.core import SegmentationOutput, UserError

from .api import LOSSES, Loss
from .shapes import require_same_shape

_EPS = 1e-6  # distance of probabilities from 0 and 1


def soft_dice_loss(
    activations: Float[Tensor, "batch classes height width"],
    masks: Float[Tensor, "batch classes height width"],
) -> Float[Tensor, ""]:
    """One minus the overlap 2|A∩B| / (|A|+|B|), per image and class, then averaged.

    Expects probabilities, not logits. One is added above and below: an empty mask answered by nothing costs
    nothing.
    """
    require_same_shape(activations=activations, masks=masks)
    activations, masks = _at_least_float32(activations), _at_least_float32(masks)
    overlap = (activations * masks).sum((2, 3))
    total = activations.sum((2, 3)) + masks.sum((2, 3))
    return (1 - (2 * overlap + 1) / (total + 1)).mean()


def pixel_cross_entropy(
    activations: Float[Tensor, "batch classes height width"],
    masks: Float[Tensor, "batch classes height width"],
    *,
    positive_weight: float = 1.0,
    logits: Float[Tensor, "batch classes height width"] | None = None,
    weights: Float[Tensor, "batch classes height width"] | None = None,
) -> Float[Tensor, ""]:
    """Binary cross-entropy, averaged over all pixels.

    Args:
        activations: Probabilities; not read when `logits` are given. Within 1e-6 of 0 and 1 they are cut off
            and receive no gradient.
        masks: One inside the object, zero outside.
        positive_weight: How much more a pixel inside counts; (number outside) / (number inside) balances.
        logits: A network that has them should pass them: a sigmoid that has saturated gives no gradient.
        weights: How much each pixel counts; by default all count 1.
    """
    masks = _at_least_float32(masks)
    if logits is not None:
        require_same_shape(logits=logits, masks=masks)
        logits = _at_least_float32(logits)
        weight = logits.new_full((), positive_weight)  # a copy from the host could not be captured
        return F.binary_cross_entropy_with_logits(logits, masks, weight=weights, pos_weight=weight)
    require_same_shape(activations=activations, masks=masks)
    inside = _at_least_float32(activations).clamp(_EPS, 1 - _EPS)
    loss = -(positive_weight * masks * inside.log() + (1 - masks) * torch.log1p(-inside))
    return loss.mean() if weights is None else (weights * loss).mean()


def near_border(
    masks: Float[Tensor, "batch classes height width"],
) -> Float[Tensor, "batch classes height width"]:
    """One where a square of two pixels to each side holds pixels inside and pixels outside, else zero."""
    grown, shrunk = (sign * F.max_pool2d(sign * masks, 5, 1, 2) for sign in (1, -1))
    return grown - shrunk


def _at_least_float32(values: Tensor) -> Tensor:
    return values if values.dtype == torch.float64 else values.float()


def class_masks(
    masks: Integer[Tensor, "batch height width"], classes: int
) -> Float[Tensor, "batch classes height width"]:
    """Masks of class numbers as one mask of zeros and ones for each class; 0 is the background."""
    numbers = torch.arange(1, classes + 1, device=masks.device).view(-1, 1, 1)
    return (masks.unsqueeze(1) == numbers).float()


@LOSSES.register("dice_cross_entropy")
@dataclass(frozen=True, kw_only=True)
class DiceCrossEntropyLoss(Loss[SegmentationOutput, Tensor]):
    """Weighted pixel cross-entropy plus weighted soft Dice; weight 0 leaves either part out.

    Attributes:
        dice_weight: Weight of the soft Dice loss.
        cross_entropy_weight: Weight of the pixel cross-entropy.
        positive_weight: What a pixel inside a class counts in the cross-entropy; one outside counts 1.
        border_weight: What a pixel within two pixels of a border counts more in the cross-entropy; with 4 it
            counts five times.
        deep_weight: Weight of the mean loss of smaller masks, where the network gives such in training.
    """

    task: ClassVar[str] = "segmentation"
    dice_weight: float = 1.0
    cross_entropy_weight: float = 1.0
    positive_weight: float = 1.0
    border_weight: float = 0.0
    deep_weight: float = 0.5

    def __post_init__(self) -> None:
        weights = ("dice_weight", "cross_entropy_weight", "positive_weight", "border_weight", "deep_weight")
        for key in weights:
            if getattr(self, key) < 0:
                raise UserError(f"loss.{key} must not be negative, got {getattr(self, key)}")
        if not self.dice_weight + self.cross_entropy_weight:
            raise UserError("loss.dice_weight and loss.cross_entropy_weight are both 0: nothing is learnt")

    def __call__(
        self, output: SegmentationOutput, masks: Integer[Tensor, "batch height width"], /, **_: Tensor
    ) -> Float[Tensor, ""]:
        """The loss of the activations of all pixels; `masks` hold class numbers, 0 for the background."""
        wanted = class_masks(masks, output.activations.shape[1])
        loss = self._of(output.activations, wanted, output.logits)
        deeper = [
            self._of(small, F.adaptive_avg_pool2d(wanted, (small.shape[2], small.shape[3])))
            for small in output.deeper
        ]
        return loss + self.deep_weight * torch.stack(deeper).mean() if deeper else loss

    def _of(self, activations: Tensor, wanted: Tensor, logits: Tensor | None = None) -> Tensor:
        loss = activations.new_zeros((), dtype=torch.float32)
        if self.cross_entropy_weight:
            weights = 1 + self.border_weight * near_border(wanted) if self.border_weight else None
            loss = loss + self.cross_entropy_weight * pixel_cross_entropy(
                activations,
                wanted,
                positive_weight=self.positive_weight,
                logits=logits,
                weights=weights,
            )
        if self.dice_weight:
            loss = loss + self.dice_weight * soft_dice_loss(activations, wanted)
        return loss
