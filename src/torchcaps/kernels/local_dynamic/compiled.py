"""Dynamic routing over stored votes on a CPU, by passes that numba compiles at their first use.

Votes are float32 or bfloat16 and lie as `cpu.py` has them, positions innermost; all sums are in float32.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..tiles import work_side_by_side
from .compiled_passes import differentiate_spots, route_spots
from .cpu import Tile, planes, tiles_of

_BLOCK_NUMBERS = 1 << 18  # votes of a block: 1 MB, what a core has for itself
_LANES = (256, 1024)  # the least and the most spots of a block: shorter rows are read slowly


def route(votes: Tensor, bias: Tensor | None, iterations: int, leaky: bool) -> tuple[Tensor, Tensor]:
    """As `cpu.route`."""
    maps = planes(votes)
    batch, _, num_out, pose, positions = maps.shape
    poses = maps.new_empty(batch, num_out, pose, positions, dtype=torch.float32)
    lengths = maps.new_empty(batch, num_out, positions, dtype=torch.float32)
    arrays = _bits(maps), _offset(maps, bias), poses.numpy(), lengths.numpy()

    def route_tiles(tiles: Sequence[Tile]) -> None:
        for tile in tiles:
            route_spots(*arrays, iterations, leaky, *_place(maps, tile))

    work_side_by_side(route_tiles, list(tiles_of(maps)))
    return poses.mT, lengths


def route_backward(
    grads: tuple[Tensor, Tensor],
    votes: Tensor,
    bias: Tensor | None,
    poses: Tensor,
    iterations: int,
    full: bool,
    leaky: bool,
) -> tuple[Tensor, Tensor]:
    """As `cpu.route_backward`."""
    maps, how = planes(votes), (iterations, full, leaky)
    grad_maps = torch.empty_like(maps)
    given = (each.contiguous().numpy() for each in (poses.mT, grads[0].mT, grads[1]))
    arrays = _bits(maps), _offset(maps, bias), *given, _bits(grad_maps)

    def differentiate(tiles: Sequence[Tile]) -> NDArray[np.float64]:
        parts = [differentiate_spots(*arrays, how, *_place(maps, tile)) for tile in tiles]
        return np.sum(parts, axis=0, dtype=np.float64)

    if maps.numel() == 0:
        return grad_maps.permute(0, 1, 4, 2, 3), poses.new_zeros(maps.shape[2:4])
    totals = work_side_by_side(differentiate, list(tiles_of(maps)))
    return grad_maps.permute(0, 1, 4, 2, 3), torch.from_numpy(np.sum(totals, axis=0)).float()


def _bits(maps: Tensor) -> NDArray[np.generic]:
    """An array of the same memory; numbers of 16 bits, which numpy lacks, appear as whole ones."""
    return maps.numpy() if maps.dtype == torch.float32 else maps.view(torch.int16).numpy().view(np.uint16)


def _offset(maps: Tensor, bias: Tensor | None) -> NDArray[np.float32]:
    return (torch.zeros(maps.shape[2:4]) if bias is None else bias.contiguous()).numpy()


def _place(maps: Tensor, tile: Tile) -> tuple[tuple[int, int, int, int], int]:
    """First and last samples and spots of a tile, the last excluded, and spots of a block."""
    samples, spots = tile[0].indices(len(maps)), tile[-1].indices(maps.shape[-1])
    least, most = _LANES
    fitting = _BLOCK_NUMBERS // max(1, maps.shape[1] * maps.shape[2] * maps.shape[3])
    lanes = min(max(fitting, least), most, spots[1] - spots[0])
    return (samples[0], samples[1], spots[0], spots[1]), max(1, lanes)
