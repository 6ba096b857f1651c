"""Triton kernels of fused scaled-distance routing; `launch.py` launches them.

A program takes ROWS samples and walks over children, one at a time; its tiles are `[OUT, ROWS, POSE]`, all
parents of a child at once, so that a softmax over them needs no second walk. Parents come first because then
the threads of a warp lie along them, and samples in registers. A vote is computed from the child's pose and
matrix in every walk, in float32 without matrix units: the difference between a vote and a parent near it
would not survive TF32. Sums over children stay in registers until the walk ends and go to one slot for each
program, to be added later in a fixed order, without atomics.
"""

# ruff: noqa: ANN001, ANN201, ANN202, PLR0913  to Triton an annotation means a compile-time constant
from typing import no_type_check  # Triton takes no kernel that run-time shape checks have wrapped

import triton
import triton.language as tl


@triton.jit
@no_type_check
def tile_axes(OUT: tl.constexpr, ROWS: tl.constexpr, POSE: tl.constexpr):
    """Parent, sample and component of a tile, each along its own axis; samples count from the tile's."""
    out = tl.arange(0, OUT)[:, None, None]
    row = tl.arange(0, ROWS)[None, :, None]
    return out, row, tl.arange(0, POSE)[None, None, :]


@triton.jit
@no_type_check
def cast_votes(
    poses, weight, pair, matrix, row_mask, part, part_mask, J: tl.constexpr, P: tl.constexpr, D: tl.constexpr
):
    """Votes of the children `pair`; zero where there is no sample, parent or component."""
    votes = tl.zeros((row_mask & part_mask).shape, tl.float32)
    for number in tl.static_range(D):
        pose = tl.load(poses + pair * D + number, mask=row_mask, other=0.0)
        column = weight + (matrix * D + number) * (J * P) + part
        votes += pose * tl.load(column, mask=part_mask, other=0.0)
    return votes


@triton.jit
@no_type_check
def vote_length(votes):
    """Lengths of votes, `[OUT, ROWS, 1]`; never zero."""
    return tl.sqrt(tl.sum(votes * votes, 2, keep_dims=True) + 1e-12)


@triton.jit
@no_type_check
def limit_votes(votes, activations, pair, row_mask):
    """Votes no longer than the activation of their child."""
    active = tl.load(activations + pair, mask=row_mask, other=0.0)
    return votes * tl.minimum(active / vote_length(votes), 1.0)


@triton.jit
@no_type_check
def distance_to(votes, targets):
    """Distances between votes and targets, `[OUT, ROWS, 1]`."""
    return tl.sqrt(tl.sum((votes - targets) * (votes - targets), 2, keep_dims=True))


@triton.jit
@no_type_check
def shares_of(distance, steepness, out_mask):
    """`exp(-steepness * distance)`, the largest of a child's parents being one: couplings before the norm."""
    logits = tl.where(out_mask, -steepness * distance, float("-inf"))
    return tl.exp(logits - tl.max(logits, 0, keep_dims=True))


@triton.jit
@no_type_check
def _mean(partial, row, row_mask, num_slots, count):
    """Mean of `count` distances of each sample, from their sums in `num_slots` slots."""
    total = tl.zeros(row.shape, tl.float32)
    for start in range(0, num_slots, 32):
        slot = start + tl.arange(0, 32)[None, None, :]
        values = tl.load(partial + row * num_slots + slot, mask=row_mask & (slot < num_slots), other=0.0)
        total += tl.sum(values, 2, keep_dims=True)
    return total / count


@triton.jit
@no_type_check
def steepness_of(mean, sharpness):
    """Minus the slope of the logits over the distance, for this mean distance."""
    return sharpness / (0.5 * mean + 1e-12)


@triton.jit(do_not_specialize=["kids"])
@no_type_check
def distance_kernel(
    poses,
    activations,
    weight,
    targets,
    partial,
    batch,
    in_caps,
    matrices,
    kids,
    J: tl.constexpr,
    P: tl.constexpr,
    D: tl.constexpr,
    ROWS: tl.constexpr,
    OUT: tl.constexpr,
    POSE: tl.constexpr,
):
    """Sum of the distances between `targets` and the votes of `kids` children, `[batch, slots]`."""
    out, row, number = tile_axes(OUT, ROWS, POSE)
    row += tl.program_id(1) * ROWS
    part, part_mask, row_mask = out * P + number, (out < J) & (number < P), row < batch
    target = tl.load(targets + row * (J * P) + part, mask=row_mask & part_mask, other=0.0)
    total = tl.zeros((OUT, ROWS, 1), tl.float32)
    first = tl.program_id(0) * kids
    for child in range(first, tl.minimum(first + kids, in_caps)):
        pair = row * in_caps + child
        votes = cast_votes(poses, weight, pair, child % matrices, row_mask, part, part_mask, J, P, D)
        total += distance_to(limit_votes(votes, activations, pair, row_mask), target)
    to = partial + row * tl.num_programs(0) + tl.program_id(0)
    tl.store(to, tl.sum(total, 0, keep_dims=True), mask=row_mask)


@triton.jit(do_not_specialize=["kids", "num_slots"])
@no_type_check
def pool_kernel(
    poses,
    activations,
    weight,
    targets,
    distances,
    means,
    couplings,
    partial,
    batch,
    in_caps,
    matrices,
    kids,
    num_slots,
    sharpness,
    J: tl.constexpr,
    P: tl.constexpr,
    D: tl.constexpr,
    ROWS: tl.constexpr,
    OUT: tl.constexpr,
    POSE: tl.constexpr,
    EVEN: tl.constexpr,
    KEEP: tl.constexpr,
):
    """Sum of `c_ij vote_ij` over `kids` children; KEEP also writes the couplings. EVEN: `c = 1 / J`.

    The mean distance is taken from `distances`, `[batch, num_slots]`, and left in `means`.
    """
    out, row, number = tile_axes(OUT, ROWS, POSE)
    row += tl.program_id(1) * ROWS
    part, part_mask, row_mask = out * P + number, (out < J) & (number < P), row < batch
    at = row * (J * P) + part
    if not EVEN:
        target = tl.load(targets + at, mask=row_mask & part_mask, other=0.0)
        mean = _mean(distances, row, row_mask, num_slots, in_caps * J)
        tl.store(means + row, mean, mask=row_mask & (tl.program_id(0) == 0))
        steepness = steepness_of(mean, sharpness)
    pooled = tl.zeros((OUT, ROWS, POSE), tl.float32)
    first = tl.program_id(0) * kids
    for child in range(first, tl.minimum(first + kids, in_caps)):
        pair = row * in_caps + child
        votes = cast_votes(poses, weight, pair, child % matrices, row_mask, part, part_mask, J, P, D)
        votes = limit_votes(votes, activations, pair, row_mask)
        if EVEN:
            coupling = tl.full((OUT, ROWS, 1), 1.0 / J, tl.float32)
        else:
            share = shares_of(distance_to(votes, target), steepness, out < J)
            coupling = share / tl.sum(share, 0, keep_dims=True)
        pooled += coupling * votes
        if KEEP:
            tl.store(couplings + pair.to(tl.int64) * J + out, coupling, mask=row_mask & (out < J))
    slot = partial + tl.program_id(0).to(tl.int64) * batch * (J * P)
    tl.store(slot + at, pooled, mask=row_mask & part_mask)
