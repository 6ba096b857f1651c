"""Triton kernels for the gradients of fused EM routing, laid out as in `em_triton_kernels.py`."""

# ruff: noqa: ANN001, ANN201, ANN202, PLR0913  to Triton an annotation means a compile-time constant
from typing import no_type_check  # run-time shape checks would wrap a kernel beyond Triton's recognition

import triton
import triton.language as tl

from .em_triton_kernels import LEAST_MASS, _coupling, _log_sum, _votes


@triton.jit
@no_type_check
def _score_grad(scores, shifts, grad_shares, means_of_grads, active, child_mask, exists):
    """`dL/dscore = R a (dL/dw - its mean)` of one window's children, w being `R a`; 0 unless `exists`."""
    mask = child_mask & exists
    coupling = _coupling(scores, shifts, mask, False)
    grad = tl.load(grad_shares, mask=mask, other=0.0) - tl.load(means_of_grads, mask=mask, other=0.0)
    return coupling * active * grad


@triton.jit
@no_type_check
def fit_grad_kernel(
    poses,
    activations,
    matrices,
    offsets,
    scores,
    shifts,
    next_scores,
    next_shifts,
    next_grad_shares,
    next_grad_means,
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
    """One round's `dL/dw` and its sum over OUT types under the couplings; `dL/dmean` and `dL/dvariance`,
    each over the mass, go to `slopes` and `curves`, and `dL/dlogit` to `grad_logits`, read there if LAST.
    """
    window, H = tl.program_id(0).to(tl.int64), ROWS * D
    child, part = tl.arange(0, IN), tl.arange(0, POSE)
    child_mask, part_mask = child < C, part < H
    at_child = window * C + child
    active = tl.load(activations + at_child, mask=child_mask, other=0.0)
    total = tl.zeros((IN,), tl.float32)
    for out in range(tl.program_id(1) * OUT, min(tl.program_id(1) * OUT + OUT, J)):
        parent = window * J + out
        at_pair, at_part = parent * C + child, parent * H + part
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
        mean = tl.load(means + at_part, mask=part_mask, other=0.0)
        variance = tl.load(variances + at_part, mask=part_mask, other=1.0)
        mass = tl.load(masses + parent)
        away = votes - mean[None, :]
        if LAST:
            grad_mean = tl.load(grad_means + at_part, mask=part_mask, other=0.0)
            grad_variance = tl.zeros((POSE,), tl.float32)
            grad_logit = tl.load(grad_logits + parent)
        else:
            grad_score = _score_grad(
                next_scores + at_pair,
                next_shifts + at_child,
                next_grad_shares + at_pair,
                next_grad_means + at_child,
                active,
                child_mask,
                True,
            )
            scaled = away / variance[None, :]
            grad_mean = tl.sum(grad_score[:, None] * scaled, 0)
            grad_variance = 0.5 * tl.sum(grad_score[:, None] * (scaled * away - 1.0), 0) / variance
            grad_logit = tl.sum(grad_score, 0) / (1.0 + tl.exp(tl.load(logits + parent)))
            tl.store(grad_logits + parent, grad_logit)
        grad_cost = -temperature * grad_logit * per_even_mass
        grad_variance += 0.5 * grad_cost * mass / variance
        grad_mean -= 2.0 * grad_variance * mean * (LEAST_MASS / mass)  # shares sum to a little less than one
        slope, curve = grad_mean / mass, grad_variance / mass
        tl.store(slopes + at_part, slope, mask=part_mask)
        tl.store(curves + at_part, curve, mask=part_mask)
        grad_mass = grad_cost * (H * tl.load(vote_cost + out) + 0.5 * _log_sum(variance, H, POSE))
        change = curve[None, :] * (away * away - (variance - min_variance)[None, :]) + slope[None, :] * away
        grad_share = grad_mass + tl.sum(tl.where(part_mask[None, :], change, 0.0), 1)
        if not FIRST:
            tl.store(grad_shares + at_pair, grad_share, mask=child_mask)
        total += grad_share * _coupling(scores + at_pair, shifts + at_child, child_mask, FIRST)
    slot = (tl.program_id(1).to(tl.int64) * tl.num_programs(0) + window) * C
    tl.store(totals + slot + child, total, mask=child_mask)


@triton.jit(do_not_specialize=["first", "iterations", "parents", "count"])
@no_type_check
def votes_grad_kernel(
    poses,
    activations,
    matrices,
    offsets,
    scores,
    shifts,
    grad_shares,
    grad_means,
    means,
    variances,
    slopes,
    curves,
    grad_votes,
    first,
    iterations,
    parents,
    count,
    C: tl.constexpr,
    J: tl.constexpr,
    ROWS: tl.constexpr,
    P: tl.constexpr,
    D: tl.constexpr,
    IN: tl.constexpr,
    OUT: tl.constexpr,
    POSE: tl.constexpr,
    OFFSET: tl.constexpr,
):
    """`dL/dvote` over all rounds, for windows from `first` on, as `[C, windows, ROWS, J, D]`.

    A round is `parents` pairs of window and type; it is `count` children of windows in `shifts`.
    """
    window, H = first + tl.program_id(0).to(tl.int64), ROWS * D
    child, part = tl.arange(0, IN), tl.arange(0, POSE)
    child_mask, part_mask = child < C, part < H
    at_child = window * C + child
    active = tl.load(activations + at_child, mask=child_mask, other=0.0)
    row = (child * tl.num_programs(0) + tl.program_id(0)).to(tl.int64)[:, None] * ROWS + (part // D)[None, :]
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
        result = tl.zeros(votes.shape, tl.float32)
        for step in range(iterations):
            at_part = (step * parents + parent) * H + part
            away = votes - tl.load(means + at_part, mask=part_mask, other=0.0)[None, :]
            variance = tl.load(variances + at_part, mask=part_mask, other=1.0)
            slope = tl.load(slopes + at_part, mask=part_mask, other=0.0)
            curve = tl.load(curves + at_part, mask=part_mask, other=0.0)
            before, here = ((step - 1) * parents + parent) * C + child, (step * parents + parent) * C + child
            shift = shifts + tl.cast(step, tl.int64) * count + at_child
            share = active * _coupling(scores + before, shift, child_mask, step == 0)
            grad_score = _score_grad(
                scores + here,
                shift + count,
                grad_shares + here,
                grad_means + tl.cast(step, tl.int64) * count + at_child,
                active,
                child_mask,
                step + 1 < iterations,
            )
            result += share[:, None] * (slope[None, :] + 2.0 * curve[None, :] * away)
            result -= grad_score[:, None] * (away / variance[None, :])
        place = row * (J * D) + out * D + (part % D)[None, :]
        tl.store(grad_votes + place, result, mask=child_mask[:, None] & part_mask[None, :])
