"""What the backends of fused dynamic routing share: its saved state and the derivative of the squash."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from torchcaps.core.squash import squash

__all__ = ["RouteState", "squash", "squash_backward"]

_EPS = 1e-8  # as in the squash


class RouteState(NamedTuple):
    """What a forward pass leaves behind; all of it is small beside the poses."""

    poses: Tensor  # (batch, out_caps, pose), the result
    pooled: Tensor  # (iterations, batch, out_caps, pose): s of each iteration, before the squash
    direction: (
        Tensor  # (iterations, batch, out_caps, pose): sum of all earlier output poses; logits = votes . it
    )


def squash_backward(pooled: Tensor, grad: Tensor) -> Tensor:
    """Gradient of `squash` at `pooled`: f g + 2 f' (g . s) s with f = n/(1+n) / sqrt(n + eps), n = |s|^2."""
    squared = pooled.square().sum(-1, keepdim=True)
    inverse = (squared + _EPS).rsqrt()
    shrink = torch.where(squared < 1, squared / (1 + squared), 1 - 1 / (1 + squared))
    twice_slope = inverse * (2 * (1 + squared).square().reciprocal() - shrink * inverse.square())
    along = (pooled * grad).sum(-1, keepdim=True)
    return grad * (shrink * inverse) + pooled * (twice_slope * along)
