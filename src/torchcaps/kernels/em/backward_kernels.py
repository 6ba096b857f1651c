"""Triton kernels for the gradients of fused EM routing, laid out as in `forward_kernels.py`."""

# ruff: noqa: ANN001, ANN201, ANN202, PLR0913  to Triton an annotation means a compile-time constant
from typing import no_type_check  # Triton takes no kernel that run-time shape checks have wrapped

import triton
import triton.language as tl

from .forward_kernels import LEAST_MASS, cast_votes, load_coupling, place_of, sum_parts, tile_axes


@triton.jit
@no_type_check
def _score_grad(scores, shifts, grad_shares, share_means, active, pair_mask, child_mask):
    """`dL/dscore = R a (dL/dw - its mean)`, w being `R a` and the mean that over a child's parents."""
    coupling = load_coupling(scores, shifts, pair_mask, child_mask, False)
    mean = tl.load(share_means, mask=child_mask, other=0.0)
    return coupling * active * (tl.load(grad_shares, mask=pair_mask, other=0.0) - mean)


@triton.jit
@no_type_check
def fit_grad_kernel(
    poses,
    activations,
    matrices,
    offsets,
    next_scores,
    next_shifts,
    next_grad_shares,
    next_share_means,
    vote_cost,
    means,
    variances,
    masses,
    logits,
    grad_means,
    grad_logits,
    slopes,
    curves,
    grad_shares,
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
    LAST: tl.constexpr,
):
    """One round's `dL/dw`; its `dL/dmean` and `dL/dvariance`, over the mass, go to `slopes` and `curves`.

    `dL/dlogit` is read from `grad_logits` if LAST, and otherwise written there.
    """
    window, H = tl.program_id(0).to(tl.int64), ROWS * COLUMNS
    kid, out, row, column = tile_axes(KIDS, OUT, R, D)
    poses += window * (C * ROWS * P)
    parent = window * J + out
    part = parent * H + row * COLUMNS + column
    part_mask = (out < J) & (row < ROWS) & (column < COLUMNS)
    mean = tl.load(means + part, mask=part_mask, other=0.0)
    variance = tl.load(variances + part, mask=part_mask, other=1.0)
    mass = tl.load(masses + parent, mask=out < J, other=1.0)
    precision = 1.0 / variance
    if LAST:
        grad_mean = tl.load(grad_means + part, mask=part_mask, other=0.0)
        grad_variance = tl.zeros((1, OUT, R, D), tl.float32)
        grad_logit = tl.load(grad_logits + parent, mask=out < J, other=0.0)
    else:
        on_mean = tl.zeros((KIDS, OUT, R, D), tl.float32)
        on_variance = tl.zeros((KIDS, OUT, R, D), tl.float32)
        on_logit = tl.zeros((KIDS, OUT, 1, 1), tl.float32)
        for first in range(0, C, KIDS):
            child = first + kid
            votes = cast_votes(
                poses, matrices, offsets, child, out, row, column, C, J, ROWS, P, COLUMNS, OFFSET
            )
            at, child_mask = window * C + child, child < C
            active = tl.load(activations + at, mask=child_mask, other=0.0)
            pair, pair_mask = at * J + out, child_mask & (out < J)
            grad_score = _score_grad(
                next_scores + pair,
                next_shifts + at,
                next_grad_shares + pair,
                next_share_means + at,
                active,
                pair_mask,
                child_mask,
            )
            on_mean += grad_score * (votes - mean)
            on_variance += grad_score * ((votes - mean) * (votes - mean) * precision - 1.0)
            on_logit += grad_score
        grad_mean = tl.sum(on_mean, 0, keep_dims=True) * precision
        grad_variance = 0.5 * tl.sum(on_variance, 0, keep_dims=True) * precision
        logit = tl.load(logits + parent, mask=out < J, other=0.0)
        grad_logit = tl.sum(on_logit, 0, keep_dims=True) / (1.0 + tl.exp(logit))
        tl.store(grad_logits + parent, grad_logit, mask=out < J)
    grad_cost = -temperature * grad_logit * per_even_mass
    grad_variance += 0.5 * grad_cost * mass * precision
    grad_mean -= 2.0 * grad_variance * mean * (LEAST_MASS / mass)  # shares sum to a little less than one
    slope, curve = grad_mean / mass, grad_variance / mass
    tl.store(slopes + part, slope, mask=part_mask)
    tl.store(curves + part, curve, mask=part_mask)
    per_part = tl.load(vote_cost + out, mask=out < J, other=0.0) * H
    grad_mass = grad_cost * (per_part + 0.5 * sum_parts(tl.log(variance)))
    curve = tl.where(part_mask, curve, 0.0)
    grad_mass -= sum_parts(curve * (variance - min_variance))
    for first in range(0, C, KIDS):
        child = first + kid
        votes = cast_votes(poses, matrices, offsets, child, out, row, column, C, J, ROWS, P, COLUMNS, OFFSET)
        grad_share = grad_mass + sum_parts((curve * (votes - mean) + slope) * (votes - mean))
        to = grad_shares + (window * C + child) * J + out
        tl.store(to, grad_share, mask=(child < C) & (out < J))


@triton.jit
@no_type_check
def share_mean_kernel(
    scores,
    shifts,
    grad_shares,
    share_means,
    grad_activations,
    count,
    J: tl.constexpr,
    OUT: tl.constexpr,
    TYPES: tl.constexpr,
    WINDOW_ROWS: tl.constexpr,
    WINDOW_COLUMNS: tl.constexpr,
    SIDE: tl.constexpr,
    STRIDE: tl.constexpr,
    EVEN: tl.constexpr,
    ADD: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Mean of `dL/dw` under a child's couplings, at all its places, and `dL/da` of each, or ADD to that.

    EVEN: the couplings of the first round, whose mean is not needed.
    """
    TIMES: tl.constexpr = ((SIDE + STRIDE - 1) // STRIDE) * ((SIDE + STRIDE - 1) // STRIDE)
    child, out = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK), tl.arange(0, OUT)
    total = tl.zeros((BLOCK,), tl.float32)
    for reach in range(TIMES):
        place, exists = place_of(child, reach, TYPES, WINDOW_ROWS, WINDOW_COLUMNS, SIDE, STRIDE)
        here = exists & (child < count)
        mask = here[:, None] & (out < J)[None, :]
        pair = place[:, None] * J + out[None, :]
        coupling = load_coupling(scores + pair, shifts + place[:, None], mask, here[:, None], EVEN)
        mean = tl.sum(coupling * tl.load(grad_shares + pair, mask=mask, other=0.0), 1)
        total += mean
        if ADD:
            mean += tl.load(grad_activations + place, mask=here, other=0.0)
        tl.store(grad_activations + place, mean, mask=here)
    if not EVEN:
        for reach in range(TIMES):
            place, exists = place_of(child, reach, TYPES, WINDOW_ROWS, WINDOW_COLUMNS, SIDE, STRIDE)
            tl.store(share_means + place, total, mask=exists & (child < count))


@triton.jit(do_not_specialize=["first", "iterations", "parents", "places"])
@no_type_check
def votes_grad_kernel(
    poses,
    activations,
    matrices,
    offsets,
    scores,
    shifts,
    grad_shares,
    share_means,
    means,
    variances,
    slopes,
    curves,
    grad_votes,
    first,
    iterations,
    parents,
    places,
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
):
    """`dL/dvote` over all rounds, for windows from `first` on, as `[C, windows, ROWS, J, COLUMNS]`.

    Two rounds are `parents` pairs of window and type apart, and `places` pairs of window and child.
    """
    window = first + tl.program_id(0).to(tl.int64)
    kid, out, row, column = tile_axes(KIDS, OUT, R, D)
    poses += window * (C * ROWS * P)
    part_mask = (out < J) & (row < ROWS) & (column < COLUMNS)
    part = (window * J + out) * (ROWS * COLUMNS) + row * COLUMNS + column
    for start in range(0, C, KIDS):
        child = start + kid
        votes = cast_votes(poses, matrices, offsets, child, out, row, column, C, J, ROWS, P, COLUMNS, OFFSET)
        at, child_mask = window * C + child, child < C
        pair_mask = child_mask & (out < J)
        active = tl.load(activations + at, mask=child_mask, other=0.0)
        result = tl.zeros((KIDS, OUT, R, D), tl.float32)
        for step in range(iterations):
            here = tl.cast(step, tl.int64) * parents * (ROWS * COLUMNS) + part
            away = votes - tl.load(means + here, mask=part_mask, other=0.0)
            slope = tl.load(slopes + here, mask=part_mask, other=0.0)
            curve = tl.load(curves + here, mask=part_mask, other=0.0)
            place = tl.cast(step, tl.int64) * places + at
            before = (place - places) * J + out
            share = active * load_coupling(scores + before, shifts + place, pair_mask, child_mask, step == 0)
            result += share * (slope + 2.0 * curve * away)
            if step + 1 < iterations:
                variance = tl.load(variances + here, mask=part_mask, other=1.0)
                grad_score = _score_grad(
                    scores + place * J + out,
                    shifts + place + places,
                    grad_shares + (place + places) * J + out,
                    share_means + place,
                    active,
                    pair_mask,
                    child_mask,
                )
                result -= grad_score * away / variance
        to = (child.to(tl.int64) * tl.num_programs(0) + tl.program_id(0)) * ROWS + row
        tl.store(
            grad_votes + to * (J * COLUMNS) + out * COLUMNS + column, result, mask=part_mask & child_mask
        )
