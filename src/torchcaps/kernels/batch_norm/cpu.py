"""Batch normalisation of rows of channels in plain PyTorch operations, a few thousand rows at a time.

Sums of short blocks are added in float64.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

_BLOCK = 1 << 18  # numbers that are worked on at a time: 1 MB, which stays in a core's cache


class Rows(NamedTuple):
    """Numbers of all channels, row by row, as they are read: a sum below `floor` counts as `floor`."""

    numbers: Tensor
    added: Tensor  # to the numbers of each channel
    floor: float  # 0 rectifies, minus infinity does nothing

    def some(self, part: slice) -> Tensor:
        """Some rows as they are read."""
        total = self.numbers[part] + self.added
        return total.clamp_(min=self.floor) if math.isfinite(self.floor) else total

    def parts(self) -> Iterator[slice]:
        """Blocks of rows."""
        count, channels = self.numbers.shape
        step = max(1, _BLOCK // channels)
        return (slice(start, min(start + step, count)) for start in range(0, count, step))


def moments(rows: Rows) -> tuple[Tensor, Tensor]:
    """Mean and variance of each channel in float64, from those of blocks (Chan, Golub & LeVeque 1979)."""
    sizes, means, rests, squares = [], [], [], []
    for part in rows.parts():
        block = rows.some(part)
        means.append(block.mean(0))
        sizes.append(float(len(block)))
        centred = block.sub_(means[-1])
        rests.append(centred.sum(0))  # not zero: the mean was rounded
        squares.append(centred.square_().sum(0))
    counts = torch.tensor(sizes, dtype=torch.float64).unsqueeze(1)
    of_blocks = torch.stack(means).double() + torch.stack(rests).double() / counts
    mean = (counts * of_blocks).sum(0) / counts.sum()
    between = (counts * (of_blocks - mean).square()).sum(0)
    return mean, (torch.stack(squares).double().sum(0) + between) / counts.sum()


def normalise(rows: Rows, scale: Tensor, shift: Tensor) -> Tensor:
    """Every number times `scale` plus `shift` of its channel."""
    result = torch.empty_like(rows.numbers)
    factor, offset = scale.to(result.dtype), shift.to(result.dtype)
    for part in rows.parts():
        torch.addcmul(offset, rows.some(part), factor, out=result[part])
    return result


def grad_sums(rows: Rows, grads: Tensor, mean: Tensor) -> tuple[Tensor, Tensor]:
    """The sum of the gradient of each channel, and its sum times the distance from the mean, in float64."""
    sums, products = [], []
    rounded = mean.to(grads.dtype)
    for part in rows.parts():
        sums.append(grads[part].sum(0))
        products.append(rows.some(part).sub_(rounded).mul_(grads[part]).sum(0))
    total = torch.stack(sums).double().sum(0)
    return total, torch.stack(products).double().sum(0) - (mean - rounded) * total


def differentiate(rows: Rows, grads: Tensor, factors: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    """`shift + slope * number + scale * gradient` above the floor, 0 elsewhere, and the sums of that.

    `factors` are shift, slope and scale of each channel.
    """
    result, sums = torch.empty_like(grads), []
    shift, slope, scale = (each.to(grads.dtype) for each in factors)
    for part in rows.parts():
        block, out = rows.some(part), result[part]
        torch.addcmul(shift, block, slope, out=out).addcmul_(grads[part], scale)
        if math.isfinite(rows.floor):
            out.masked_fill_(block <= rows.floor, 0)
        sums.append(out.sum(0))
    return result, torch.stack(sums).double().sum(0)
