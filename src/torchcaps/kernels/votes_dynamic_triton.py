"""Dynamic routing over given votes on CUDA: one kernel forward, one backward, all iterations in registers.

A program takes a few positions with all their votes, `[T, X, J, P]`, children outermost so that sums over
them need no exchange between threads. The backward pass recomputes the couplings of every iteration from the
votes. Arithmetic is float32; votes and their gradient may be half precision.
"""

# ruff: noqa: ANN001, ANN201, ANN202, PLR0913  to Triton an annotation means a compile-time constant
from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, no_type_check  # run-time shape checks would wrap a kernel beyond recognition

import torch
import triton
import triton.language as tl
from torch import Tensor

from .dynamic_triton_squash import _shrink


@triton.jit
@no_type_check
def _places(
    tile,
    positions,
    count,
    T: tl.constexpr,
    J: tl.constexpr,
    P: tl.constexpr,
    IN: tl.constexpr,
    SPOTS: tl.constexpr,
    OUT: tl.constexpr,
    POSE: tl.constexpr,
):
    """Places of a tile's votes `[T, X, J, P]`, poses `[X, J, P]` and lengths `[X, J]`, each with its mask."""
    child = tl.arange(0, IN)[:, None, None, None]
    spot = tile * SPOTS + tl.arange(0, SPOTS)
    sample, position = (spot // positions).to(tl.int64), spot % positions
    out, number = tl.arange(0, OUT), tl.arange(0, POSE)
    length = (sample[:, None] * J + out[None, :]) * positions + position[:, None]
    length_mask = (spot < count)[:, None] & (out < J)[None, :]
    pose = length[:, :, None] * P + number[None, None, :]
    pose_mask = length_mask[:, :, None] & (number < P)[None, None, :]
    inside = (out[:, None] * P + number[None, :])[None, None, :, :]
    row = (sample[None, :, None, None] * T + child) * positions + position[None, :, None, None]
    return (
        row * (J * P) + inside,
        pose_mask[None, :, :, :] & (child < T),
        pose,
        pose_mask,
        length,
        length_mask,
    )


@triton.jit
@no_type_check
def _split(votes, direction, J: tl.constexpr, LEAKY: tl.constexpr):
    """Couplings `[T, X, J]`: softmax over out capsules of the votes' agreement with `direction`."""
    logits = tl.sum(votes * direction[None, :, :, :], 3)
    exists = tl.arange(0, votes.shape[2]) < J
    logits = tl.where(exists[None, None, :], logits, float("-inf"))
    largest = tl.max(logits, 2)
    if LEAKY:
        largest = tl.maximum(largest, 0.0)
    share = tl.exp(logits - largest[:, :, None])
    total = tl.sum(share, 2)
    if LEAKY:
        total += tl.exp(-largest)
    return share / total[:, :, None]


@triton.jit
@no_type_check
def _pool(votes, coupling, bias):
    return tl.sum(votes * coupling[:, :, :, None], 0) + bias


@triton.jit
@no_type_check
def _squash(pooled):
    squared = tl.sum(pooled * pooled, 2)
    return pooled * (tl.rsqrt(squared + 1e-8) * _shrink(squared))[:, :, None]


@triton.jit
@no_type_check
def _squash_grad(pooled, grad):
    squared = tl.sum(pooled * pooled, 2)
    inverse, shrink = tl.rsqrt(squared + 1e-8), _shrink(squared)
    twice_slope = inverse * (2.0 / ((1.0 + squared) * (1.0 + squared)) - shrink * inverse * inverse)
    along = twice_slope * tl.sum(pooled * grad, 2)
    return grad * (shrink * inverse)[:, :, None] + pooled * along[:, :, None]


@triton.jit
@no_type_check
def _direction(votes, bias, steps, J: tl.constexpr, LEAKY: tl.constexpr):
    """Sum of the output poses of the first `steps` iterations, `[X, J, P]`."""
    direction = tl.zeros(votes.shape[1:], tl.float32)
    for _ in range(steps):
        direction += _squash(_pool(votes, _split(votes, direction, J, LEAKY), bias))
    return direction


@triton.jit
@no_type_check
def _load_bias(
    bias, J: tl.constexpr, P: tl.constexpr, OUT: tl.constexpr, POSE: tl.constexpr, BIAS: tl.constexpr
):
    out, number = tl.arange(0, OUT)[:, None], tl.arange(0, POSE)[None, :]
    mask = (out < J) & (number < P)
    if BIAS:
        value = tl.load(bias + out * P + number, mask=mask, other=0.0)
    else:
        value = tl.zeros((OUT, POSE), tl.float32)
    return value[None, :, :]


@triton.jit(do_not_specialize=["iterations"])
@no_type_check
def route_kernel(
    votes,
    bias,
    poses,
    lengths,
    positions,
    count,
    iterations,
    T: tl.constexpr,
    J: tl.constexpr,
    P: tl.constexpr,
    IN: tl.constexpr,
    SPOTS: tl.constexpr,
    OUT: tl.constexpr,
    POSE: tl.constexpr,
    BIAS: tl.constexpr,
    LEAKY: tl.constexpr,
):
    """Output poses `[batch, J, positions, P]` and their lengths, from votes `[batch, T, positions, J, P]`."""
    place, mask, pose, pose_mask, length, length_mask = _places(
        tl.program_id(0), positions, count, T, J, P, IN, SPOTS, OUT, POSE
    )
    vote = tl.load(votes + place, mask=mask, other=0.0).to(tl.float32)
    offset = _load_bias(bias, J, P, OUT, POSE, BIAS)
    direction = _direction(vote, offset, iterations - 1, J, LEAKY)
    routed = _squash(_pool(vote, _split(vote, direction, J, LEAKY), offset))
    tl.store(poses + pose, routed, mask=pose_mask)
    tl.store(lengths + length, tl.sqrt(tl.sum(routed * routed, 2)), mask=length_mask)


@triton.jit(do_not_specialize=["iterations", "backwards", "tiles"])
@no_type_check
def route_grad_kernel(
    votes,
    bias,
    poses,
    grad_poses,
    grad_lengths,
    grad_votes,
    grad_bias,
    positions,
    count,
    iterations,
    backwards,
    tiles,
    T: tl.constexpr,
    J: tl.constexpr,
    P: tl.constexpr,
    IN: tl.constexpr,
    SPOTS: tl.constexpr,
    OUT: tl.constexpr,
    POSE: tl.constexpr,
    BIAS: tl.constexpr,
    LEAKY: tl.constexpr,
):
    """Gradient of the votes through the last `backwards` iterations, and of the bias in a slot a program."""
    offset = _load_bias(bias, J, P, OUT, POSE, BIAS)
    bias_total = tl.zeros((SPOTS, OUT, POSE), tl.float32)
    for tile in range(tl.program_id(0), tiles, tl.num_programs(0)):
        place, mask, pose, pose_mask, length, length_mask = _places(
            tile, positions, count, T, J, P, IN, SPOTS, OUT, POSE
        )
        vote = tl.load(votes + place, mask=mask, other=0.0).to(tl.float32)
        routed = tl.load(poses + pose, mask=pose_mask, other=0.0)
        norm = tl.sqrt(tl.sum(routed * routed, 2))
        along = tl.load(grad_lengths + length, mask=length_mask, other=0.0)
        along = tl.where(norm > 0, along / tl.where(norm > 0, norm, 1.0), 0.0)
        incoming = tl.load(grad_poses + pose, mask=pose_mask, other=0.0) + routed * along[:, :, None]
        grad_vote = tl.zeros(vote.shape, tl.float32)
        later = tl.zeros(routed.shape, tl.float32)  # dL/dv through the logits of later iterations
        for back in range(backwards):
            direction = _direction(vote, offset, iterations - 1 - back, J, LEAKY)
            coupling = _split(vote, direction, J, LEAKY)
            grad_pooled = _squash_grad(_pool(vote, coupling, offset), incoming)
            bias_total += grad_pooled
            grad_vote += coupling[:, :, :, None] * grad_pooled[None, :, :, :]
            if backwards > 1:
                grad_coupling = tl.sum(vote * grad_pooled[None, :, :, :], 3)
                mean = tl.sum(coupling * grad_coupling, 2)
                grad_logits = (coupling * (grad_coupling - mean[:, :, None]))[:, :, :, None]
                grad_vote += grad_logits * direction[None, :, :, :]
                later += tl.sum(grad_logits * vote, 0)
            incoming = later
        tl.store(grad_votes + place, grad_vote.to(grad_votes.dtype.element_ty), mask=mask)
    out, number = tl.arange(0, OUT)[:, None], tl.arange(0, POSE)[None, :]
    slot = grad_bias + tl.program_id(0) * (J * P) + out * P + number
    tl.store(slot, tl.sum(bias_total, 0), mask=(out < J) & (number < P))


@dataclass(frozen=True)
class Tile:
    """Positions that a program takes at a time, and its warps."""

    spots: int
    warps: int


def choose_tile(num_in: int, num_out: int, pose: int) -> Tile:
    """Positions that give each thread of a warp four numbers of a child, or more where children are few."""
    children, block = (
        triton.next_power_of_2(num_in),
        triton.next_power_of_2(num_out) * triton.next_power_of_2(pose),
    )
    spots = max(1, 128 // block, 512 // (children * block))
    return Tile(spots, min(max(children * spots * block // 1024, 1), 8))


@lru_cache(maxsize=16)
def _processors(device: torch.device) -> int:
    return torch.cuda.get_device_properties(device).multi_processor_count if device.type == "cuda" else 1


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
        route_kernel[(-(-count // tile.spots),)](
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
    tiles = -(-count // tile.spots)
    programs = min(tiles, 16 * _processors(votes.device) // tile.warps)
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
