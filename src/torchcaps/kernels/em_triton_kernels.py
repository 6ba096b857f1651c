"""Triton kernels of fused EM routing; `em_triton.py` launches them and says what each is for.

A program takes one window with all its children and loops over parent types. Votes `[IN, POSE]` are computed
again wherever they are needed, as `sum_p pose[i, r, p] matrix[o, i, p, d]` for component `h = r D + d`: each
number of poses and matrices is small enough to stay in the cache. Scores and couplings are stored without the
pose's axis, `[window, type, child]`; the coupling of round t is `exp(score[t - 1] - shift[t])`.
"""

# ruff: noqa: ANN001, ANN201, ANN202, PLR0913  to Triton an annotation means a compile-time constant
from typing import no_type_check  # run-time shape checks would wrap a kernel beyond Triton's recognition

import triton
import triton.language as tl

LOG_TWO_PI: tl.constexpr = tl.constexpr(1.8378770664093453)
LEAST_MASS: tl.constexpr = tl.constexpr(1e-7)


@triton.jit
@no_type_check
def _votes(
    poses,
    matrices,
    offsets,
    child,
    C: tl.constexpr,
    ROWS: tl.constexpr,
    P: tl.constexpr,
    D: tl.constexpr,
    POSE: tl.constexpr,
    OFFSET: tl.constexpr,
):
    """Votes `[IN, POSE]` of one window's children for one type; zero where there is no child or component."""
    part = tl.arange(0, POSE)
    mask = (child < C)[:, None] & (part < ROWS * D)[None, :]
    at_pose = (child * (ROWS * P))[:, None] + (part // D * P)[None, :]
    at_matrix = (child * (P * D))[:, None] + (part % D)[None, :]
    votes = tl.zeros(mask.shape, tl.float32)
    if OFFSET:
        votes += tl.load(offsets + (child * (ROWS * D))[:, None] + part[None, :], mask=mask, other=0.0)
    for number in tl.static_range(P):
        pose = tl.load(poses + at_pose + number, mask=mask, other=0.0)
        votes += pose * tl.load(matrices + at_matrix + number * D, mask=mask, other=0.0)
    return votes


@triton.jit
@no_type_check
def _coupling(scores, shifts, child_mask, is_even):
    """Couplings of one window's children to one type; `is_even` where no score is known yet."""
    score = tl.load(scores, mask=child_mask & (not is_even), other=0.0)
    return tl.where(child_mask, tl.exp(score - tl.load(shifts, mask=child_mask, other=0.0)), 0.0)


@triton.jit
@no_type_check
def _log_sigmoid(logit):
    return tl.minimum(logit, 0.0) - tl.log(1.0 + tl.exp(-tl.abs(logit)))


@triton.jit
@no_type_check
def _log_sum(variance, H: tl.constexpr, POSE: tl.constexpr):
    return tl.sum(tl.where(tl.arange(0, POSE) < H, tl.log(variance), 0.0), 0)


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
    totals,
    temperature,
    per_even_mass,
    min_variance,
    C: tl.constexpr,
    J: tl.constexpr,
    ROWS: tl.constexpr,
    P: tl.constexpr,
    D: tl.constexpr,
    IN: tl.constexpr,
    OUT: tl.constexpr,
    POSE: tl.constexpr,
    OFFSET: tl.constexpr,
    FIRST: tl.constexpr,
    LAST: tl.constexpr,
):
    """M-step of OUT types of one window and, unless LAST, their scores and the log of those scores' sum."""
    window, H = tl.program_id(0).to(tl.int64), ROWS * D
    child, part = tl.arange(0, IN), tl.arange(0, POSE)
    child_mask, part_mask = child < C, part < H
    active = tl.load(activations + window * C + child, mask=child_mask, other=0.0)
    largest = tl.full((IN,), float("-inf"), tl.float32)
    total = tl.zeros((IN,), tl.float32)
    for out in range(tl.program_id(1) * OUT, min(tl.program_id(1) * OUT + OUT, J)):
        parent = window * J + out
        votes = _votes(
            poses + window * (C * ROWS * P),
            matrices + out * (C * P * D),
            offsets,
            child,
            C,
            ROWS,
            P,
            D,
            POSE,
            OFFSET,
        )
        share = active * _coupling(
            scores + parent * C + child, shifts + window * C + child, child_mask, FIRST
        )
        mass = tl.sum(share, 0) + LEAST_MASS
        share = (share / mass)[:, None]
        mean = tl.sum(share * votes, 0)
        # around the mean, not E[v²]-E[v]²: that difference cancels for votes far from zero
        squares = (votes - mean[None, :]) * (votes - mean[None, :])
        variance = tl.where(part_mask, tl.sum(share * squares, 0) + min_variance, 1.0)
        log_sum = _log_sum(variance, H, POSE)
        cost = (H * tl.load(vote_cost + out) + 0.5 * log_sum) * mass * per_even_mass
        logit = temperature * (tl.load(activation_cost + out) - cost)
        tl.store(means + parent * H + part, mean, mask=part_mask)
        tl.store(variances + parent * H + part, variance, mask=part_mask)
        tl.store(masses + parent, mass)
        tl.store(logits + parent, logit)
        if not LAST:
            distance = tl.sum(tl.where(child_mask[:, None], squares / variance[None, :], 0.0), 1)
            score = _log_sigmoid(logit) - 0.5 * (distance + log_sum + H * LOG_TWO_PI)
            tl.store(next_scores + parent * C + child, score, mask=child_mask)
            larger = tl.maximum(largest, score)
            total = total * tl.exp(largest - larger) + tl.exp(score - larger)
            largest = larger
    if not LAST:
        slot = (tl.program_id(1).to(tl.int64) * tl.num_programs(0) + window) * C
        tl.store(totals + slot + child, largest + tl.log(total), mask=child_mask)


@triton.jit
@no_type_check
def _place(
    child,
    reach,
    TYPES: tl.constexpr,
    WINDOW_ROWS: tl.constexpr,
    WINDOW_COLUMNS: tl.constexpr,
    SIDE: tl.constexpr,
    STRIDE: tl.constexpr,
):
    """Where in `[windows, children]` children of a map stand for the `reach`-th time, and whether they do."""
    HEIGHT: tl.constexpr = STRIDE * (WINDOW_ROWS - 1) + SIDE
    WIDTH: tl.constexpr = STRIDE * (WINDOW_COLUMNS - 1) + SIDE
    REACH: tl.constexpr = (SIDE + STRIDE - 1) // STRIDE
    kind, x, y = child % TYPES, child // TYPES % WIDTH, child // (TYPES * WIDTH) % HEIGHT
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
    values,
    result,
    count,
    slots,
    slot_size,
    TYPES: tl.constexpr,
    WINDOW_ROWS: tl.constexpr,
    WINDOW_COLUMNS: tl.constexpr,
    SIDE: tl.constexpr,
    STRIDE: tl.constexpr,
    LOG: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Each child's sum over the windows it stands in, or LOG of the sum of exponentials, at all its places.

    `values` `[slots, windows, children]` and `result` `[windows, children]` have a window's children in the
    order (type, row, column).
    """
    TIMES: tl.constexpr = ((SIDE + STRIDE - 1) // STRIDE) * ((SIDE + STRIDE - 1) // STRIDE)
    child = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    largest = tl.full((BLOCK,), float("-inf"), tl.float32)
    total = tl.zeros((BLOCK,), tl.float32)
    for reach in range(TIMES):
        place, exists = _place(child, reach, TYPES, WINDOW_ROWS, WINDOW_COLUMNS, SIDE, STRIDE)
        exists = exists & (child < count)
        for slot in range(slots):
            at = values + tl.cast(slot, tl.int64) * slot_size + place
            if LOG:
                value = tl.load(at, mask=exists, other=float("-inf"))
                larger = tl.maximum(largest, value)
                known = larger > float("-inf")  # a child may stand in no window, or not yet in one
                fade = tl.where(known, tl.exp(largest - larger), 0.0)
                total = total * fade + tl.where(known, tl.exp(value - larger), 0.0)
                largest = larger
            else:
                total += tl.load(at, mask=exists, other=0.0)
    if LOG:
        total = largest + tl.log(total)
    for reach in range(TIMES):
        place, exists = _place(child, reach, TYPES, WINDOW_ROWS, WINDOW_COLUMNS, SIDE, STRIDE)
        tl.store(result + place, total, mask=exists & (child < count))
