"""Triton kernels of dynamic routing over stored votes: all iterations in registers.

A program takes a few positions with all their votes, `[T, X, J, P]`, children outermost so that sums over
them need no exchange between threads. The backward pass recomputes the couplings of every iteration from the
votes. Arithmetic is float32; votes and their gradient may be half precision.
"""

# ruff: noqa: ANN001, ANN201, ANN202, PLR0913  to Triton an annotation means a compile-time constant
from typing import no_type_check  # Triton takes no kernel that run-time shape checks have wrapped

import triton
import triton.language as tl

from ..squash_kernels import squash, squash_grad, with_lengths_grad


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
def _direction(votes, bias, steps, J: tl.constexpr, LEAKY: tl.constexpr):
    """Sum of the output poses of the first `steps` iterations, `[X, J, P]`."""
    direction = tl.zeros(votes.shape[1:], tl.float32)
    for _ in range(steps):
        direction += squash(_pool(votes, _split(votes, direction, J, LEAKY), bias), 2)
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
    routed = squash(_pool(vote, _split(vote, direction, J, LEAKY), offset), 2)
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
        along = tl.load(grad_lengths + length, mask=length_mask, other=0.0)
        incoming = tl.load(grad_poses + pose, mask=pose_mask, other=0.0)
        incoming = with_lengths_grad(routed, incoming, along, 2)
        grad_vote = tl.zeros(vote.shape, tl.float32)
        later = tl.zeros(routed.shape, tl.float32)  # dL/dv through the logits of later iterations
        for back in range(backwards):
            direction = _direction(vote, offset, iterations - 1 - back, J, LEAKY)
            coupling = _split(vote, direction, J, LEAKY)
            grad_pooled = squash_grad(_pool(vote, coupling, offset), incoming, 2)
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
