"""Losses of segmentation: soft Dice, weighted cross-entropy, and their sum."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from .shapes import require_same_shape


def soft_dice_loss(
    activations: Float[Tensor, "batch classes height width"],
    masks: Float[Tensor, "batch classes height width"],
    *,
    smooth: float = 1.0,
) -> Float[Tensor, ""]:
    """One minus the overlap 2|A∩B| / (|A|+|B|), per image and class, then averaged.

    Expects probabilities, not logits. `smooth` is added above and below: an empty mask answered by nothing
    costs nothing.
    """
    require_same_shape(activations=activations, masks=masks)
    activations, masks = _at_least_float32(activations), _at_least_float32(masks)
    overlap = (activations * masks).sum((2, 3))
    total = activations.sum((2, 3)) + masks.sum((2, 3))
    return (1 - (2 * overlap + smooth) / (total + smooth)).mean()


def pixel_cross_entropy(
    activations: Float[Tensor, "batch classes height width"],
    masks: Float[Tensor, "batch classes height width"],
    *,
    positive_weight: float = 1.0,
    logits: Float[Tensor, "batch classes height width"] | None = None,
    eps: float = 1e-6,
) -> Float[Tensor, ""]:
    """Binary cross-entropy, averaged over all pixels.

    Args:
        activations: Probabilities, kept `eps` away from 0 and 1; not read when `logits` are given.
        masks: One inside the object, zero outside.
        positive_weight: How much more a pixel inside counts; (number outside) / (number inside) balances.
        logits: A network that has them should pass them: a sigmoid that has saturated gives no gradient.
        eps: Also the distance from 0 and 1 at which an activation stops receiving a gradient.
    """
    masks = _at_least_float32(masks)
    if logits is not None:
        require_same_shape(logits=logits, masks=masks)
        logits = _at_least_float32(logits)
        weight = logits.new_tensor(positive_weight)
        return F.binary_cross_entropy_with_logits(logits, masks, pos_weight=weight)
    require_same_shape(activations=activations, masks=masks)
    inside = _at_least_float32(activations).clamp(eps, 1 - eps)
    return -(positive_weight * masks * inside.log() + (1 - masks) * torch.log1p(-inside)).mean()


def dice_cross_entropy_loss(
    activations: Float[Tensor, "batch classes height width"],
    masks: Float[Tensor, "batch classes height width"],
    *,
    dice_weight: float = 1.0,
    positive_weight: float = 1.0,
    logits: Float[Tensor, "batch classes height width"] | None = None,
) -> Float[Tensor, ""]:
    """Cross-entropy plus `dice_weight` times soft Dice; arguments as in the two."""
    entropy = pixel_cross_entropy(activations, masks, positive_weight=positive_weight, logits=logits)
    return entropy + dice_weight * soft_dice_loss(activations, masks)


def _at_least_float32(values: Tensor) -> Tensor:
    return values if values.dtype == torch.float64 else values.float()
