"""Batch normalisation of rows of channels on a CPU, by passes that numba compiles at their first use.

The functions are those of `cpu.py`, in float32 alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..tiles import work_side_by_side
from . import compiled_rows

_SAMPLED_ROWS = 256  # whose mean is near that of all rows
_ROWS_OF_TILE = 1 << 12
Sums = NDArray[np.float64]


def moments(rows: Tensor, floor: float) -> tuple[Tensor, Tensor]:
    """As `cpu.moments`."""
    near = rows[:: max(1, len(rows) // _SAMPLED_ROWS)].clamp(min=floor).mean(0)
    numbers, origin = rows.numpy(), near.numpy()

    def add(part: slice, totals: Sums) -> None:
        compiled_rows.add_moments(numbers[part], np.float32(floor), origin, totals)

    sums, squares = _summed(rows, add) / len(rows)
    # the variance is around the mean: what the moment around a number near it has too much is taken away
    return near.double() + sums, (squares - sums.square()).clamp_(min=0)


def normalise(rows: Tensor, floor: float, scale: Tensor, shift: Tensor) -> Tensor:
    """As `cpu.normalise`."""
    result = torch.empty_like(rows)
    numbers, out, factors = rows.numpy(), result.numpy(), _stacked(scale, shift)

    def fill(parts: Sequence[slice]) -> None:
        for part in parts:
            compiled_rows.normalise(numbers[part], np.float32(floor), *factors, out[part])

    work_side_by_side(fill, _tiles(rows))
    return result


def grad_sums(rows: Tensor, grads: Tensor, floor: float, mean: Tensor) -> tuple[Tensor, Tensor]:
    """As `cpu.grad_sums`."""
    rounded = mean.float()
    numbers, slopes, origin = rows.numpy(), grads.numpy(), rounded.numpy()

    def add(part: slice, totals: Sums) -> None:
        compiled_rows.add_grad_sums(numbers[part], slopes[part], np.float32(floor), origin, totals)

    total, along = _summed(rows, add)
    return total, along - (mean - rounded) * total


def differentiate(rows: Tensor, grads: Tensor, floor: float, factors: Sequence[Tensor]) -> Tensor:
    """As `cpu.differentiate`."""
    result = torch.empty_like(rows)
    numbers, slopes, out, stacked = rows.numpy(), grads.numpy(), result.numpy(), _stacked(*factors)

    def fill(parts: Sequence[slice]) -> None:
        for part in parts:
            compiled_rows.differentiate(numbers[part], slopes[part], np.float32(floor), stacked, out[part])

    work_side_by_side(fill, _tiles(rows))
    return result


def _summed(rows: Tensor, add: Callable[[slice, Sums], None]) -> Tensor:
    """Two sums of each channel, to which `add` adds those of some rows."""

    def sums_of(parts: Sequence[slice]) -> Sums:
        totals = np.zeros((2, rows.shape[1]))
        for part in parts:
            add(part, totals)
        return totals

    return torch.from_numpy(np.sum(work_side_by_side(sums_of, _tiles(rows)), axis=0))


def _stacked(*factors: Tensor) -> NDArray[np.float32]:
    return torch.stack(factors).float().numpy()


def _tiles(rows: Tensor) -> list[slice]:
    return [slice(start, start + _ROWS_OF_TILE) for start in range(0, len(rows), _ROWS_OF_TILE)]
