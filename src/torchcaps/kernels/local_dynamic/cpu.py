"""Dynamic routing over stored votes in plain PyTorch operations: the CPU path, exact in float64 too.

A convolution writes its maps one after the other, so positions lie side by side in memory: with the axes
`[batch, child, type, pose, position]` every operation runs along them, whatever the number of children and
types. Samples and positions are cut into tiles whose intermediates stay in the cache while all iterations
run over them; of a map nothing is kept but the votes. Any size that fits in memory is accepted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import Any, NamedTuple, TypeAlias

import torch
from torch import Tensor

from torchcaps.core import squash

from ..squash import squash_backward
from ..tiles import work_side_by_side

Tile: TypeAlias = tuple[Any, ...]  # an index: slices of samples and of positions

_TILE_ELEMENTS = 1 << 19  # votes of a tile: 2 MB, and as much for each of two intermediates
_FEWEST_SPOTS = 64  # positions of a tile: operations on shorter rows are bound by their overhead


class _Rounds(NamedTuple):
    """What each iteration of a tile knew and gave: `[samples, child, type, spot]`, then with a pose."""

    splits: list[Tensor]  # from the second iteration on; the first splits evenly
    directions: list[Tensor]  # sum of the poses of all earlier iterations, `[samples, type, pose, spot]`
    pooled: list[Tensor]


def route(votes: Tensor, bias: Tensor | None, iterations: int, leaky: bool) -> tuple[Tensor, Tensor]:
    """Output poses and lengths; positions stay innermost in memory, where the next convolution wants them."""
    maps = planes(votes)
    batch, _, num_out, pose, positions = maps.shape
    dtype = torch.promote_types(votes.dtype, torch.float32)
    poses = votes.new_empty(batch, num_out, pose, positions, dtype=dtype)
    lengths = votes.new_empty(batch, num_out, positions, dtype=dtype)

    def route_tiles(tiles: Sequence[Tile]) -> None:
        buffers = _Buffers(1, dtype)
        for tile in tiles:
            some = maps[tile].to(dtype)
            pooled = _iterate(some, bias, iterations, leaky, *buffers.like(some)).pooled[-1]
            poses[tile] = squash(pooled.mT).mT
            lengths[tile] = poses[tile].square().sum(2).sqrt()

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
    """Gradients of votes and bias, from those of poses and lengths."""
    maps, routed, towards = planes(votes), poses.mT, grads[0].mT
    grad_maps = torch.empty_like(maps)

    def differentiate(tiles: Sequence[Tile]) -> Tensor:
        buffers, grad_bias = _Buffers(2, poses.dtype), poses.new_zeros(maps.shape[2:4])
        for tile in tiles:
            some = maps[tile].to(poses.dtype)
            scratch, wide = buffers.like(some)
            grad_tile = grad_maps[tile] if grad_maps.dtype == wide.dtype else wide
            rounds = _iterate(some, bias, iterations, leaky, scratch)
            incoming = towards[tile] + _along(routed[tile], grads[1][tile])
            grad_bias += _tile_backward(incoming, some, rounds, (full, leaky), scratch, grad_tile)
            if grad_tile is wide:
                grad_maps[tile] = wide
        return grad_bias

    grad_biases = work_side_by_side(differentiate, list(tiles_of(maps)))
    return grad_maps.permute(0, 1, 4, 2, 3), torch.stack(grad_biases).sum(0)


class _Buffers:
    """Memory for intermediates of a tile's size: fresh memory for each would cost more than arithmetic."""

    def __init__(self, count: int, dtype: torch.dtype) -> None:
        self.flat = [torch.empty(0, dtype=dtype) for _ in range(count)]

    def like(self, tile: Tensor) -> list[Tensor]:
        if tile.numel() > self.flat[0].numel():  # the first tile is the largest
            self.flat = [tile.new_empty(tile.numel()) for _ in self.flat]
        return [memory[: tile.numel()].view(tile.shape) for memory in self.flat]


def planes(votes: Tensor) -> Tensor:
    """Votes as `[batch, child, type, pose, position]`: no copy of those that a convolution wrote."""
    return votes.permute(0, 1, 3, 4, 2).contiguous()


def tiles_of(maps: Tensor) -> Iterator[Tile]:
    """Samples and positions of each tile."""
    batch, *sizes, positions = maps.shape
    spots = max(1, _TILE_ELEMENTS // max(1, prod(sizes)))
    samples = max(1, spots // max(1, positions))
    spots = max(spots, _FEWEST_SPOTS)
    for first in range(0, batch, samples):
        for start in range(0, positions, spots):
            yield slice(first, first + samples), ..., slice(start, start + spots)


def _along(poses: Tensor, grad_lengths: Tensor) -> Tensor:
    """The gradient of the poses by way of their lengths; zero for a pose of length zero."""
    lengths = poses.square().sum(2).sqrt()
    return poses * torch.where(lengths > 0, grad_lengths / lengths, 0).unsqueeze(2)


def _iterate(votes: Tensor, bias: Tensor | None, iterations: int, leaky: bool, scratch: Tensor) -> _Rounds:
    """All iterations of one tile."""
    offset = 0 if bias is None else bias.unsqueeze(-1)
    rounds = _Rounds([], [], [votes.sum(1).div_(votes.shape[2] + leaky).add_(offset)])
    for _ in range(iterations - 1):
        direction = squash(rounds.pooled[-1].mT).mT
        if rounds.directions:
            direction += rounds.directions[-1]
        rounds.directions.append(direction)
        rounds.splits.append(_softmax(_agree(votes, direction, scratch), leaky))
        rounds.pooled.append(_pool(votes, rounds.splits[-1], scratch).add_(offset))
    return rounds


def _tile_backward(
    incoming: Tensor,
    votes: Tensor,
    rounds: _Rounds,
    how: tuple[bool, bool],
    scratch: Tensor,
    grad_votes: Tensor,
) -> Tensor:
    """Fills the gradient of one tile's votes, and returns its share of the gradient of the bias."""
    full, leaky = how
    grad_pooled = squash_backward(rounds.pooled[-1].mT, incoming.mT).mT
    grad_bias = grad_pooled.sum((0, 3))
    grad_direction = torch.zeros_like(incoming)
    for step in reversed(range(len(rounds.splits))):
        split, direction = rounds.splits[step], rounds.directions[step]
        if step == len(rounds.splits) - 1:
            torch.mul(split.unsqueeze(3), grad_pooled.unsqueeze(1), out=grad_votes)
        else:
            grad_votes.addcmul_(split.unsqueeze(3), grad_pooled.unsqueeze(1))
        if not full:
            return grad_bias
        grad_split = _agree(votes, grad_pooled, scratch)
        grad_logits = split * (grad_split - (split * grad_split).sum(2, keepdim=True))
        grad_votes.addcmul_(grad_logits.unsqueeze(3), direction.unsqueeze(1))
        grad_direction += _pool(votes, grad_logits, scratch)  # a pose enters every later direction
        grad_pooled = squash_backward(rounds.pooled[step].mT, grad_direction.mT).mT
        grad_bias += grad_pooled.sum((0, 3))
    if not rounds.splits:
        grad_votes.zero_()
    grad_votes.add_(grad_pooled.unsqueeze(1), alpha=1 / (votes.shape[2] + leaky))
    return grad_bias


def _agree(votes: Tensor, targets: Tensor, scratch: Tensor) -> Tensor:
    """`vote . target` of every child and type."""
    return torch.mul(votes, targets.unsqueeze(1), out=scratch).sum(3)


def _pool(votes: Tensor, split: Tensor, scratch: Tensor) -> Tensor:
    """Sum of the weighed votes over children."""
    return torch.mul(votes, split.unsqueeze(3), out=scratch).sum(1)


def _softmax(logits: Tensor, leaky: bool) -> Tensor:
    """Couplings over the types; `leaky` adds one logit fixed at 0 and drops its share."""
    if not leaky:
        return torch.softmax(logits, 2)
    return torch.softmax(torch.cat([logits, torch.zeros_like(logits[:, :, :1])], 2), 2)[:, :, :-1]
