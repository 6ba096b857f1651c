"""Triton kernels for the gradients of fused scaled-distance routing, laid out as its other kernels."""

# ruff: noqa: ANN001, ANN201, ANN202, PLR0913  to Triton an annotation means a compile-time constant
from typing import no_type_check  # Triton takes no kernel that run-time shape checks have wrapped

import triton
import triton.language as tl

from .forward_kernels import (
    cast_votes,
    distance_to,
    limit_votes,
    shares_of,
    steepness_of,
    tile_axes,
    vote_length,
)


@triton.jit
@no_type_check
def _pulls(votes, target, grad, steepness, out_mask):
    """Couplings, and `dL/d distance` over the distance, which pulls vote and target together."""
    distance = distance_to(votes, target)
    share, grad_coupling = shares_of(distance, steepness, out_mask), tl.sum(votes * grad, 2, keep_dims=True)
    total = tl.sum(share, 0, keep_dims=True)
    mean = tl.sum(share * grad_coupling, 0, keep_dims=True) / total  # of shares: it need not wait for total
    coupling = share / total
    grad_logit = coupling * (grad_coupling - mean)
    away = distance > 0.0  # where they meet, the distance has no direction
    return coupling, tl.where(away, -steepness * grad_logit / tl.where(away, distance, 1.0), 0.0)


@triton.jit(do_not_specialize=["kids"])
@no_type_check
def target_grad_kernel(
    poses,
    activations,
    weight,
    targets,
    means,
    grad_pooled,
    partial,
    batch,
    in_caps,
    matrices,
    kids,
    sharpness,
    J: tl.constexpr,
    P: tl.constexpr,
    D: tl.constexpr,
    ROWS: tl.constexpr,
    OUT: tl.constexpr,
    POSE: tl.constexpr,
):
    """One round's `dL/dtarget = sum_i dL/dd_ij (target_j - vote_ij) / d_ij` over `kids` children."""
    out, row, number = tile_axes(OUT, ROWS, POSE)
    row += tl.program_id(1) * ROWS
    part, part_mask, row_mask = out * P + number, (out < J) & (number < P), row < batch
    at, mask = row * (J * P) + part, row_mask & part_mask
    target = tl.load(targets + at, mask=mask, other=0.0)
    grad = tl.load(grad_pooled + at, mask=mask, other=0.0)
    steepness = steepness_of(tl.load(means + row, mask=row_mask, other=1.0), sharpness)
    total = tl.zeros((OUT, ROWS, POSE), tl.float32)
    first = tl.program_id(0) * kids
    for child in range(first, tl.minimum(first + kids, in_caps)):
        pair = row * in_caps + child
        votes = cast_votes(poses, weight, pair, child % matrices, row_mask, part, part_mask, J, P, D)
        votes = limit_votes(votes, activations, pair, row_mask)
        _, pull = _pulls(votes, target, grad, steepness, out < J)
        total += pull * (target - votes)
    slot = partial + tl.program_id(0).to(tl.int64) * batch * (J * P)
    tl.store(slot + at, total, mask=mask)


@triton.jit(do_not_specialize=["span", "iterations"])
@no_type_check
def votes_grad_kernel(
    poses,
    activations,
    weight,
    targets,
    means,
    grad_pooled,
    grad_poses,
    grad_activations,
    grad_weight,
    batch,
    in_caps,
    matrices,
    span,
    iterations,
    sharpness,
    J: tl.constexpr,
    P: tl.constexpr,
    D: tl.constexpr,
    OUT: tl.constexpr,
    POSE: tl.constexpr,
    IN: tl.constexpr,
    FULL: tl.constexpr,
):
    """Gradients of all inputs, for one matrix and IN numbers of the poses that it is multiplied with.

    A program walks over `span` of the (sample, position) pairs that vote with this matrix, one at a time, the
    matrix and its gradient in registers. The gradient goes to one slot for each program that shares a matrix.
    """
    matrix, split = tl.program_id(0), tl.program_id(2)
    out, column, number = tile_axes(OUT, IN, POSE)
    column += tl.program_id(1) * IN
    part, part_mask = out * P + number, (out < J) & (number < P)
    columns, columns_mask = (matrix * D + column) * (J * P) + part, (column < D) & part_mask
    turn = tl.load(weight + columns, mask=columns_mask, other=0.0)
    total = tl.zeros((OUT, IN, POSE), tl.float32)
    positions = in_caps // matrices
    for voter in range(split * span, tl.minimum((split + 1) * span, batch * positions)):
        sample = voter // positions
        pair = sample * in_caps + (voter % positions) * matrices + matrix
        pose = tl.load(poses + pair * D + column, mask=column < D, other=0.0)
        if D <= IN:
            raw = tl.sum(pose * turn, 1, keep_dims=True)
        else:
            raw = cast_votes(poses, weight, pair, matrix, True, part, part_mask, J, P, D)
        length = vote_length(raw)
        ratio = tl.load(activations + pair) / length
        limit = tl.minimum(ratio, 1.0)
        # of the limited votes: over all rounds, or in the last one with its couplings fixed
        votes, at = raw * limit, sample * (J * P) + part
        if FULL:
            grad = tl.load(grad_pooled + at, mask=part_mask, other=0.0) * (1.0 / J)
        else:
            grad = tl.zeros(votes.shape, tl.float32)
        for step in range(1 if FULL else iterations - 1, iterations):
            skip = tl.cast(step, tl.int64) * batch * (J * P)
            towards = tl.load(grad_pooled + skip + at, mask=part_mask, other=0.0)
            target = tl.load(targets + (skip - batch * (J * P)) + at, mask=part_mask, other=0.0)
            steepness = steepness_of(tl.load(means + (step - 1) * batch + sample), sharpness)
            coupling, pull = _pulls(votes, target, towards, steepness, out < J)
            grad += coupling * towards
            if FULL:
                grad += pull * (votes - target)
        grad_ratio = tl.where(ratio <= 1.0, tl.sum(grad * raw, 2, keep_dims=True), 0.0) / length
        tl.store(grad_activations + pair, tl.sum(grad_ratio), mask=tl.program_id(1) == 0)
        grad = limit * grad - (grad_ratio * limit / length) * raw
        turned = tl.sum(tl.sum(turn * grad, 2), 0)
        place = tl.program_id(1) * IN + tl.arange(0, IN)
        tl.store(grad_poses + pair * D + place, turned, mask=place < D)
        total += pose * grad
    slot = grad_weight + split.to(tl.int64) * matrices * (D * J * P)
    tl.store(slot + columns, total, mask=columns_mask)
