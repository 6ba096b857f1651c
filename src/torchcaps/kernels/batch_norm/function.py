"""Batch normalisation as a function that autograd knows, rectifying its input on the way if asked to.

`cpu.py` runs anywhere; `compiled.py` reads each number once a pass, where numba is installed.
"""

from __future__ import annotations

import math
from types import ModuleType
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from torchcaps.core import UserError

from ..availability import has_numba
from . import cpu
from .cpu import Rows

_WORTH_COMPILING = 1 << 18  # numbers of all maps: fewer would not gain the seconds that compiling takes
Maps = Float[Tensor, "batch channels height width"]
OfChannels = Float[Tensor, " channels"]


def normalise_maps(
    maps: Maps,
    weight: OfChannels,
    bias: OfChannels,
    *,
    eps: float,
    added: OfChannels | None = None,
    rectified: bool = False,
) -> tuple[Maps, OfChannels, OfChannels]:
    """Maps of mean zero and variance one times `weight` plus `bias`; also mean and variance, in float64.

    Args:
        maps: In float32, with channels last in memory.
        weight: Of each channel.
        bias: Of each channel.
        eps: Added to the variance.
        added: To the maps first, such as the bias of the convolution that wrote them.
        rectified: Take the rectified maps instead, which are never stored.
    """
    offset = torch.zeros_like(bias) if added is None else added
    floor = 0.0 if rectified else -math.inf
    return _Normalise.apply(maps, offset, weight, bias, eps, floor)


class _Normalise(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, maps: Tensor, added: Tensor, weight: Tensor, bias: Tensor, eps: float, floor: float
    ) -> tuple[Tensor, ...]:
        passes, rows = _passes(maps), _rows(maps, added, floor)
        mean, variance = passes.moments(rows)
        inverse = (variance + eps).rsqrt()
        scale = weight.detach() * inverse
        result = passes.normalise(rows, scale, bias.detach() - mean * scale)
        ctx.save_for_backward(maps, added, weight, mean, inverse)
        ctx.mark_non_differentiable(mean, variance)
        ctx.floor = floor
        return _maps(result, maps), mean, variance

    @staticmethod
    def backward(ctx: Any, grad: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
        if torch.is_grad_enabled():  # create_graph: what the passes compute would count as constant
            raise UserError(
                "batch norm with channels last has no second derivative on a CPU; "
                "model.to(memory_format=torch.contiguous_format) takes PyTorch's, which has one"
            )
        maps, added, weight, mean, inverse = (each.detach() for each in ctx.saved_tensors)
        passes, rows = _passes(maps), _rows(maps, added, ctx.floor)
        grads = _flat(grad.detach().contiguous(memory_format=torch.channels_last))
        grad_bias, along = passes.grad_sums(rows, grads, mean)
        grad_weight, scale = along * inverse, weight * inverse
        slope = -scale * inverse * grad_weight / len(grads)
        shift = -scale * grad_bias / len(grads) - mean * slope
        result, sums = passes.differentiate(rows, grads, (shift, slope, scale))
        learned = (each.to(weight.dtype) for each in (sums, grad_weight, grad_bias))
        return _maps(result, maps), *learned, None, None


def _passes(maps: Tensor) -> ModuleType:
    """The module that computes these maps."""
    if maps.numel() >= _WORTH_COMPILING and has_numba():
        from . import compiled  # only here: numba is an extra, and slow to import

        return compiled
    return cpu


def _rows(maps: Tensor, added: Tensor, floor: float) -> Rows:
    return Rows(_flat(maps.detach()), added.detach(), floor)


def _flat(maps: Tensor) -> Tensor:
    return maps.permute(0, 2, 3, 1).reshape(-1, maps.shape[1])


def _maps(rows: Tensor, like: Tensor) -> Tensor:
    batch, channels, height, width = like.shape
    return rows.view(batch, height, width, channels).permute(0, 3, 1, 2)
