"""Dynamic routing over stored votes in float32 on a CPU, by passes that numba compiles at their first use.

Votes lie as `cpu.py` has them, positions innermost. Votes of half precision are widened tile by tile.
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
    offset, lanes = _offset(maps, bias), _lanes(maps)

    def route_tiles(tiles: Sequence[Tile]) -> None:
        for tile in tiles:
            some = _Some(maps, tile)
            found = poses.numpy(), lengths.numpy()
            route_spots(some.votes.numpy(), some.at, offset, iterations, leaky, lanes, *found, *some.of_poses)

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
    given = [each.contiguous().numpy() for each in (poses.mT, grads[0].mT, grads[1])]
    offset, lanes = _offset(maps, bias), _lanes(maps)

    def differentiate(tiles: Sequence[Tile]) -> Tensor:
        total = torch.zeros(maps.shape[2:4], dtype=torch.float64)
        for tile in tiles:
            some = _Some(maps, tile)
            is_whole = some.votes is maps
            grad = grad_maps if is_whole else torch.empty_like(some.votes)
            arguments = some.votes.numpy(), some.at, offset, how, lanes, *given, *some.of_poses, grad.numpy()
            total += torch.from_numpy(differentiate_spots(*arguments))
            if not is_whole:
                grad_maps[tile] = grad
        return total

    totals = work_side_by_side(differentiate, list(tiles_of(maps)))
    return grad_maps.permute(0, 1, 4, 2, 3), torch.stack(totals).sum(0).float()


class _Some:
    """Votes of a tile in float32: all maps and where it begins in them, or a widened copy of it."""

    def __init__(self, maps: Tensor, tile: Tile) -> None:
        samples, spots = tile[0].indices(len(maps)), tile[-1].indices(maps.shape[-1])
        begin, sizes = (samples[0], spots[0]), (samples[1] - samples[0], spots[1] - spots[0])
        is_float32 = maps.dtype == torch.float32
        self.votes = maps if is_float32 else maps[tile].to(torch.float32).contiguous()
        self.at = begin if is_float32 else (0, 0)
        self.of_poses = sizes, begin


def _offset(maps: Tensor, bias: Tensor | None) -> NDArray[np.float32]:
    return (torch.zeros(maps.shape[2:4]) if bias is None else bias.contiguous()).numpy()


def _lanes(maps: Tensor) -> int:
    """Spots of a block."""
    least, most = _LANES
    numbers = max(1, maps.shape[1] * maps.shape[2] * maps.shape[3])
    return int(min(max(_BLOCK_NUMBERS // numbers, least), most, max(1, maps.shape[-1])))
