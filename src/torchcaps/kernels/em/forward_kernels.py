"""Triton kernels of fused EM routing; `launch.py` launches them and says what each is for.

A program takes one window and OUT parent types and walks over the children, KIDS at a time: its tiles are
`[KIDS, OUT, R, D]`, with D columns of a vote in one thread, so that a sum over children stays in registers
until the walk ends. A vote is `sum_p pose[i, r, p] matrix[i, p, o, d]`, computed again in every walk: what it
is made of stays in the cache. Scores are stored without the pose's axes, `[window, child, type]`; the
coupling of round t is `exp(score[t - 1] - shift[t])`.
"""

# ruff: noqa: ANN001, ANN201, ANN202, PLR0913  to Triton an annotation means a compile-time constant
from typing import no_type_check  # Triton takes no kernel that run-time shape checks have wrapped

import triton
import triton.language as tl

LOG_TWO_PI: tl.constexpr = tl.constexpr(1.8378770664093453)
LEAST_MASS: tl.constexpr = tl.constexpr(1e-7)


@triton.jit
@no_type_check
def tile_axes(KIDS: tl.constexpr, OUT: tl.constexpr, R: tl.constexpr, D: tl.constexpr):
    """Child, parent type, row and column of a tile, each along its own axis; types start at the program's."""
    child = tl.arange(0, KIDS)[:, None, None, None]
    out = tl.program_id(1) * OUT + tl.arange(0, OUT)[None, :, None, None]
    row = tl.arange(0, R)[None, None, :, None]
    column = tl.arange(0, D)[None, None, None, :]
    return child, out, row, column


@triton.jit
@no_type_check
def cast_votes(
    poses,
    matrices,
    offsets,
    child,
    out,
    row,
    column,
    C: tl.constexpr,
    J: tl.constexpr,
    ROWS: tl.constexpr,
    P: tl.constexpr,
    COLUMNS: tl.constexpr,
    OFFSET: tl.constexpr,
):
    """Votes of one window's children; zero where there is no child, type or component."""
    pose_mask = (child < C) & (row < ROWS)
    vote_mask = pose_mask & (out < J) & (column < COLUMNS)
    at_pose = child * (ROWS * P) + row * P
    at_matrix = child * (P * J * COLUMNS) + out * COLUMNS + column + row * 0
    votes = tl.zeros(vote_mask.shape, tl.float32)
    if OFFSET:
        at_offset = child * (ROWS * COLUMNS) + row * COLUMNS + column + out * 0
        votes += tl.load(offsets + at_offset, mask=vote_mask, other=0.0)
    for number in tl.static_range(P):
        pose = tl.load(poses + at_pose + number, mask=pose_mask, other=0.0)
        votes += pose * tl.load(matrices + at_matrix + number * (J * COLUMNS), mask=vote_mask, other=0.0)
    return votes


@triton.jit
@no_type_check
def load_coupling(scores, shifts, pair_mask, child_mask, is_even):
    """Couplings of children to types; `is_even` where no score is known yet."""
    score = tl.load(scores, mask=pair_mask & (not is_even), other=0.0)
    return tl.where(pair_mask, tl.exp(score - tl.load(shifts, mask=child_mask, other=0.0)), 0.0)


@triton.jit
@no_type_check
def sum_parts(values):
    """Sum over the components of a pose, which stay as axes of length one."""
    return tl.sum(tl.sum(values, 3, keep_dims=True), 2, keep_dims=True)


@triton.jit
@no_type_check
def _log_sigmoid(logit):
    return tl.minimum(logit, 0.0) - tl.log(1.0 + tl.exp(-tl.abs(logit)))


@triton.jit
@no_type_check
def fit_kernel(
    poses,
    activations,
    matrices,
    offsets,
    scores,
    shifts,
    activation_cost,
    vote_cost,
    means,
    variances,
    masses,
    logits,
    next_scores,
    temperature,
    per_even_mass,
    min_variance,
    C: tl.constexpr,
    J: tl.constexpr,
    ROWS: tl.constexpr,
    P: tl.constexpr,
    COLUMNS: tl.constexpr,
    KIDS: tl.constexpr,
    OUT: tl.constexpr,
    R: tl.constexpr,
    D: tl.constexpr,
    OFFSET: tl.constexpr,
    FIRST: tl.constexpr,
    LAST: tl.constexpr,
):
    """M-step of OUT types of one window and, unless LAST, the scores of its children's votes."""
    window, H = tl.program_id(0).to(tl.int64), ROWS * COLUMNS
    kid, out, row, column = tile_axes(KIDS, OUT, R, D)
    poses += window * (C * ROWS * P)
    part_mask = (out < J) & (row < ROWS) & (column < COLUMNS)
    mass = tl.zeros((KIDS, OUT, 1, 1), tl.float32)
    mean = tl.zeros((KIDS, OUT, R, D), tl.float32)
    for first in range(0, C, KIDS):
        child = first + kid
        votes = cast_votes(poses, matrices, offsets, child, out, row, column, C, J, ROWS, P, COLUMNS, OFFSET)
        at, child_mask = window * C + child, child < C
        share = load_coupling(scores + at * J + out, shifts + at, child_mask & (out < J), child_mask, FIRST)
        share *= tl.load(activations + at, mask=child_mask, other=0.0)
        mass += share
        mean += share * votes
    mass = tl.sum(mass, 0, keep_dims=True) + LEAST_MASS
    mean = tl.sum(mean, 0, keep_dims=True) / mass
    parent = window * J + out
    # here, not below: Triton 3.6 cannot compile a mass that outlives a walk of one step, with OUT of one
    tl.store(masses + parent, mass, mask=out < J)
    # around the mean, not E[v²]-E[v]²: that difference cancels for votes far from zero
    variance = tl.zeros((KIDS, OUT, R, D), tl.float32)
    for first in range(0, C, KIDS):
        child = first + kid
        votes = cast_votes(poses, matrices, offsets, child, out, row, column, C, J, ROWS, P, COLUMNS, OFFSET)
        at, child_mask = window * C + child, child < C
        share = load_coupling(scores + at * J + out, shifts + at, child_mask & (out < J), child_mask, FIRST)
        share *= tl.load(activations + at, mask=child_mask, other=0.0)
        variance += share * (votes - mean) * (votes - mean)
    variance = tl.where(part_mask, tl.sum(variance, 0, keep_dims=True) / mass + min_variance, 1.0)
    log_sum = sum_parts(tl.log(variance))
    cost = (H * tl.load(vote_cost + out, mask=out < J, other=0.0) + 0.5 * log_sum) * mass * per_even_mass
    logit = temperature * (tl.load(activation_cost + out, mask=out < J, other=0.0) - cost)
    part = parent * H + row * COLUMNS + column
    tl.store(means + part, mean, mask=part_mask)
    tl.store(variances + part, variance, mask=part_mask)
    tl.store(logits + parent, logit, mask=out < J)
    if not LAST:
        constant = _log_sigmoid(logit) - 0.5 * (log_sum + H * LOG_TWO_PI)
        precision = 1.0 / variance
        for first in range(0, C, KIDS):
            child = first + kid
            votes = cast_votes(
                poses, matrices, offsets, child, out, row, column, C, J, ROWS, P, COLUMNS, OFFSET
            )
            distance = sum_parts((votes - mean) * (votes - mean) * precision)
            to = next_scores + (window * C + child) * J + out
            tl.store(to, constant - 0.5 * distance, mask=(child < C) & (out < J))


@triton.jit
@no_type_check
def place_of(
    child,
    reach,
    TYPES: tl.constexpr,
    WINDOW_ROWS: tl.constexpr,
    WINDOW_COLUMNS: tl.constexpr,
    SIDE: tl.constexpr,
    STRIDE: tl.constexpr,
):
    """Where in `[windows, children]` children of a map stand for the `reach`-th time, and whether they do.

    A window's children are in the order (type, row, column).
    """
    HEIGHT: tl.constexpr = STRIDE * (WINDOW_ROWS - 1) + SIDE
    WIDTH: tl.constexpr = STRIDE * (WINDOW_COLUMNS - 1) + SIDE
    REACH: tl.constexpr = (SIDE + STRIDE - 1) // STRIDE
    x, y, kind = child % WIDTH, child // WIDTH % HEIGHT, child // (WIDTH * HEIGHT) % TYPES
    sample = (child // (TYPES * WIDTH * HEIGHT)).to(tl.int64)
    row, column = y // STRIDE - reach // REACH, x // STRIDE - reach % REACH
    m, n = y - STRIDE * row, x - STRIDE * column
    exists = (row >= 0) & (row < WINDOW_ROWS) & (m < SIDE)
    exists = exists & (column >= 0) & (column < WINDOW_COLUMNS) & (n < SIDE)
    window = (sample * WINDOW_ROWS + row) * WINDOW_COLUMNS + column
    return (window * TYPES + kind) * (SIDE * SIDE) + m * SIDE + n, exists


@triton.jit
@no_type_check
def total_kernel(
    scores,
    shifts,
    count,
    J: tl.constexpr,
    OUT: tl.constexpr,
    TYPES: tl.constexpr,
    WINDOW_ROWS: tl.constexpr,
    WINDOW_COLUMNS: tl.constexpr,
    SIDE: tl.constexpr,
    STRIDE: tl.constexpr,
    EVEN: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Log of the sum of `exp(score)` over a child's parents, at all its places; EVEN: all scores are 0."""
    TIMES: tl.constexpr = ((SIDE + STRIDE - 1) // STRIDE) * ((SIDE + STRIDE - 1) // STRIDE)
    child, out = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK), tl.arange(0, OUT)
    largest = tl.full((BLOCK,), float("-inf"), tl.float32)
    total = tl.zeros((BLOCK,), tl.float32)
    for reach in range(TIMES):
        place, exists = place_of(child, reach, TYPES, WINDOW_ROWS, WINDOW_COLUMNS, SIDE, STRIDE)
        mask = (exists & (child < count))[:, None] & (out < J)[None, :]
        if EVEN:
            score = tl.where(mask, 0.0, float("-inf"))
        else:
            score = tl.load(scores + place[:, None] * J + out[None, :], mask=mask, other=float("-inf"))
        larger = tl.maximum(largest, tl.max(score, 1))
        known = larger > float("-inf")  # a child may stand in no window, or not yet in one
        safe = tl.where(known, larger, 0.0)
        total = total * tl.exp(largest - safe) + tl.sum(tl.exp(score - safe[:, None]), 1)
        largest = larger
    shift = largest + tl.log(total)
    for reach in range(TIMES):
        place, exists = place_of(child, reach, TYPES, WINDOW_ROWS, WINDOW_COLUMNS, SIDE, STRIDE)
        tl.store(shifts + place, shift, mask=exists & (child < count))
