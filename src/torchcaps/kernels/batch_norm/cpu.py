"""Batch normalisation of rows of channels in plain PyTorch operations, a few thousand rows at a time.

Sums of short blocks are added in float64. A number below `floor` counts as `floor`: 0 rectifies, minus
infinity does nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

_BLOCK = 1 << 18  # numbers that are worked on at a time: 1 MB, which stays in a core's cache


def moments(rows: Tensor, floor: float) -> tuple[Tensor, Tensor]:
    """Mean and variance of each channel in float64, from those of blocks (Chan, Golub & LeVeque 1979)."""
    blocks = _blocks(rows)
    scratch, means, rests, squares = torch.empty_like(blocks[0]), [], [], []
    for block in blocks:
        raised = _raised(block, floor)
        means.append(raised.mean(0))
        centred = torch.sub(raised, means[-1], out=scratch[: len(block)])
        rests.append(centred.sum(0))  # not zero: the mean was rounded
        squares.append(centred.square_().sum(0))
    counts = torch.tensor([float(len(block)) for block in blocks], dtype=torch.float64).unsqueeze(1)
    of_blocks = torch.stack(means).double() + torch.stack(rests).double() / counts
    mean = (counts * of_blocks).sum(0) / counts.sum()
    between = (counts * (of_blocks - mean).square()).sum(0)
    return mean, (torch.stack(squares).double().sum(0) + between) / counts.sum()


def normalise(rows: Tensor, floor: float, scale: Tensor, shift: Tensor) -> Tensor:
    """Every number times `scale` plus `shift` of its channel."""
    result = torch.empty_like(rows)
    factor, offset = scale.to(rows.dtype), shift.to(rows.dtype)
    for block, out in zip(_blocks(rows), _blocks(result), strict=True):
        torch.addcmul(offset, _raised(block, floor), factor, out=out)
    return result


def grad_sums(rows: Tensor, grads: Tensor, floor: float, mean: Tensor) -> tuple[Tensor, Tensor]:
    """The sum of the gradient of each channel, and its sum times the distance from the mean, in float64."""
    blocks = _blocks(rows)
    scratch, sums, products = torch.empty_like(blocks[0]), [], []
    rounded = mean.to(rows.dtype)
    for block, grad in zip(blocks, _blocks(grads), strict=True):
        away = torch.sub(_raised(block, floor), rounded, out=scratch[: len(block)])
        sums.append(grad.sum(0))
        products.append(away.mul_(grad).sum(0))
    total = torch.stack(sums).double().sum(0)
    return total, torch.stack(products).double().sum(0) - (mean - rounded) * total


def differentiate(rows: Tensor, grads: Tensor, floor: float, factors: Sequence[Tensor]) -> Tensor:
    """`shift + slope * number + scale * gradient` where a number is above `floor`, 0 elsewhere.

    `factors` are shift, slope and scale of each channel.
    """
    result = torch.empty_like(rows)
    shift, slope, scale = (each.to(rows.dtype) for each in factors)
    for block, grad, out in zip(_blocks(rows), _blocks(grads), _blocks(result), strict=True):
        torch.addcmul(shift, block, slope, out=out).addcmul_(grad, scale)
        if math.isfinite(floor):
            out.masked_fill_(block <= floor, 0)
    return result


def _raised(block: Tensor, floor: float) -> Tensor:
    return block.clamp(min=floor) if math.isfinite(floor) else block


def _blocks(rows: Tensor) -> tuple[Tensor, ...]:
    return rows.split(max(1, _BLOCK // rows.shape[1]))  # type: ignore[no-untyped-call]
