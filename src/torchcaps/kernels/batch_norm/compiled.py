"""Batch normalisation of rows of channels on a CPU, by passes that numba compiles at their first use.

The functions are those of `cpu.py`, in float32 alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..tiles import compute_side_by_side
from . import compiled_rows
from .cpu import Rows

_SAMPLED_ROWS = 256  # whose mean is near that of all rows
_ROWS_OF_TILE = 1 << 12
Sums = NDArray[np.float64]


def moments(rows: Rows) -> tuple[Tensor, Tensor]:
    """As `cpu.moments`."""
    near = rows.some(slice(None, None, max(1, len(rows.numbers) // _SAMPLED_ROWS))).mean(0)
    numbers, added, floor = _arrays(rows)
    origin = near.numpy()

    def add(part: slice, totals: Sums) -> None:
        compiled_rows.add_moments(numbers[part], added, floor, origin, totals)

    sums, squares = _summed(rows, add) / len(rows.numbers)
    # the variance is around the mean: what the moment around a number near it has too much is taken away
    return near.double() + sums, (squares - sums.square()).clamp_(min=0)


def normalise(rows: Rows, scale: Tensor, shift: Tensor) -> Tensor:
    """As `cpu.normalise`."""
    result = torch.empty_like(rows.numbers)
    (numbers, added, floor), out, factors = _arrays(rows), result.numpy(), _stacked(scale, shift)

    def fill(part: slice, _: Sums) -> None:
        compiled_rows.normalise(numbers[part], added, floor, factors[0], factors[1], out[part])

    _summed(rows, fill)
    return result


def grad_sums(rows: Rows, grads: Tensor, mean: Tensor) -> tuple[Tensor, Tensor]:
    """As `cpu.grad_sums`."""
    rounded = mean.float()
    (numbers, added, floor), slopes, origin = _arrays(rows), grads.numpy(), rounded.numpy()

    def add(part: slice, totals: Sums) -> None:
        compiled_rows.add_grad_sums(numbers[part], added, slopes[part], floor, origin, totals)

    total, along = _summed(rows, add)
    return total, along - (mean - rounded) * total


def differentiate(rows: Rows, grads: Tensor, factors: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    """As `cpu.differentiate`."""
    result = torch.empty_like(rows.numbers)
    (numbers, added, floor), slopes, out = _arrays(rows), grads.numpy(), result.numpy()
    stacked = _stacked(*factors)

    def fill(part: slice, totals: Sums) -> None:
        compiled_rows.differentiate(numbers[part], added, slopes[part], floor, stacked, out[part], totals)

    return result, _summed(rows, fill)[0]


def _summed(rows: Rows, work: Callable[[slice, Sums], None]) -> Tensor:
    """Two sums of each channel, to which `work` adds those of some rows, side by side."""
    count, channels = rows.numbers.shape

    def sums_of(parts: Sequence[slice]) -> Sums:
        totals = np.zeros((2, channels))
        for part in parts:
            work(part, totals)
        return totals

    tiles = [slice(start, start + _ROWS_OF_TILE) for start in range(0, count, _ROWS_OF_TILE)]
    return torch.from_numpy(np.sum(compute_side_by_side(sums_of, tiles), axis=0))


def _arrays(rows: Rows) -> tuple[NDArray[np.float32], NDArray[np.float32], np.float32]:
    return rows.numbers.numpy(), rows.added.numpy(), np.float32(rows.floor)


def _stacked(*factors: Tensor) -> NDArray[np.float32]:
    return torch.stack(factors).float().numpy()
