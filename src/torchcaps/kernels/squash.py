"""The derivative of the squash in plain PyTorch; `squash_kernels.py` has it in Triton."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from torchcaps.core import squash_divisor

_EPS = 1e-8  # as in `core.squash`, like what is done about long poses


def squash_backward(
    pooled: Float[Tensor, "*where pose"], grad: Float[Tensor, "*where pose"]
) -> Float[Tensor, "*where pose"]:
    """Gradient of `squash` at `pooled`: f g + 2 f' (g . s) s with f = n/(1+n) / sqrt(n + eps), n = |s|^2."""
    divisor = squash_divisor(pooled)
    pooled = pooled / divisor
    squared = pooled.square().sum(-1, keepdim=True)
    inverse = (squared + _EPS).rsqrt()
    shrink = squared / (1 + squared)
    twice_slope = inverse * (2 * (1 + squared).square().reciprocal() - shrink * inverse.square())
    along = (pooled * grad).sum(-1, keepdim=True)
    return torch.addcmul(grad * (shrink * inverse), pooled, twice_slope * along) / divisor
