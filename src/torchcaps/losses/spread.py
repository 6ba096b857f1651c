"""Spread loss on activations, and the growth of its margin."""

from __future__ import annotations

import math

from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F

from .shapes import require_labels


def spread_loss(
    activations: Float[Tensor, "batch classes"],
    labels: Int[Tensor, " batch"],
    *,
    margin: float | Tensor = 0.9,
) -> Float[Tensor, ""]:
    """How far wrong classes come within `margin` of the true one, squared and summed (Hinton 2018, eq. 3)."""
    require_labels(activations, labels)
    true = activations.gather(1, labels.unsqueeze(1))
    others = 1 - F.one_hot(labels, activations.shape[1]).to(activations.dtype)
    return ((margin - (true - activations)).relu().square() * others).sum(1).mean()


FINAL_MARGIN = 0.9


def margin_by_epoch(epoch: int) -> float:
    """Margin of the thesis: 0.2 in epoch 0, then 0.1 more each epoch up to 0.9."""
    return min(0.2 + 0.1 * epoch, FINAL_MARGIN)


def margin_by_step(step: int) -> float:
    """Margin of Hinton's code: a sigmoid from 0.2 to 0.99, half way after 200,000 steps."""
    return 0.2 + 0.79 / (1 + math.exp(-min(10.0, step / 50_000 - 4)))
