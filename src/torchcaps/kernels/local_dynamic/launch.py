"""Launches of dynamic routing over stored votes on CUDA."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import triton
from torch import Tensor
from triton import cdiv

from ..launch import processors
from .kernels import route_grad_kernel, route_kernel


@dataclass(frozen=True)
class Tile:
    """Positions that a program takes at a time, and its warps."""

    spots: int
    warps: int


def choose_tile(num_in: int, num_out: int, pose: int) -> Tile:
    """Positions that give each thread of a warp four numbers of a child, or more where children are few."""
    children = triton.next_power_of_2(num_in)
    block = triton.next_power_of_2(num_out) * triton.next_power_of_2(pose)
    spots = max(1, 128 // block, 512 // (children * block))
    return Tile(spots, min(max(children * spots * block // 1024, 1), 8))


def route(votes: Tensor, bias: Tensor | None, iterations: int, leaky: bool) -> tuple[Tensor, Tensor]:
    """Output poses and lengths."""
    batch, _, positions, num_out, pose = votes.shape
    poses = votes.new_empty(batch, num_out, positions, pose, dtype=torch.float32)
    lengths = votes.new_empty(batch, num_out, positions, dtype=torch.float32)
    tile, settings = _settings(votes, bias, leaky)
    count = batch * positions
    if count == 0:
        return poses, lengths
    with torch.cuda.device_of(votes):
        route_kernel[(cdiv(count, tile.spots),)](
            votes, poses if bias is None else bias, poses, lengths, positions, count, iterations, **settings
        )
    return poses, lengths


def route_backward(
    grads: tuple[Tensor, Tensor],
    votes: Tensor,
    bias: Tensor | None,
    poses: Tensor,
    iterations: int,
    full: bool,
    leaky: bool,
) -> tuple[Tensor, Tensor]:
    """Gradients of votes and bias."""
    batch, _, positions, num_out, pose = votes.shape
    tile, settings = _settings(votes, bias, leaky)
    count = batch * positions
    tiles = cdiv(count, tile.spots)
    programs = min(tiles, 16 * processors(votes.device) // tile.warps)
    grad_votes = torch.empty_like(votes)
    grad_bias = votes.new_empty(programs, num_out, pose, dtype=torch.float32)
    if count == 0:
        return grad_votes, grad_bias.sum(0)
    with torch.cuda.device_of(votes):
        route_grad_kernel[(programs,)](
            votes,
            poses if bias is None else bias,
            poses,
            *grads,
            grad_votes,
            grad_bias,
            positions,
            count,
            iterations,
            iterations if full else 1,
            tiles,
            **settings,
        )
    return grad_votes, grad_bias.sum(0)


def _settings(votes: Tensor, bias: Tensor | None, leaky: bool) -> tuple[Tile, dict[str, Any]]:
    _, num_in, _, num_out, pose = votes.shape
    tile = choose_tile(num_in, num_out, pose)
    return tile, {
        "T": num_in,
        "J": num_out,
        "P": pose,
        "IN": triton.next_power_of_2(num_in),
        "SPOTS": tile.spots,
        "OUT": triton.next_power_of_2(num_out),
        "POSE": triton.next_power_of_2(pose),
        "BIAS": bias is not None,
        "LEAKY": leaky,
        "num_warps": tile.warps,
    }
