"""Triton kernels for the gradients of fused dynamic routing, laid out as in `dynamic_triton_kernels.py`."""

# ruff: noqa: ANN001, ANN201, ANN202, PLR0913  to Triton an annotation means a compile-time constant
from typing import no_type_check  # run-time shape checks would wrap a kernel beyond Triton's recognition

import triton
import triton.language as tl

from .dynamic_triton_kernels import (
    _agreement,
    _matrix_places,
    _pose_places,
    _softmax_sums,
    _spread,
    _target_places,
    _weigh,
)


@triton.jit
@no_type_check
def _softmax_grad_sums(
    pose,
    weight,
    matrix_place,
    matrix_mask,
    direction,
    grad_pooled,
    target_place,
    target_mask,
    J: tl.constexpr,
    P: tl.constexpr,
    IN: tl.constexpr,
    ROWS: tl.constexpr,
    KIDS: tl.constexpr,
    LEAKY: tl.constexpr,
    PRECISION: tl.constexpr,
):
    """As `_softmax_sums`, and the mean of `dL/dc` under the couplings."""
    largest = tl.full((ROWS, KIDS), 0.0 if LEAKY else float("-inf"), tl.float32)
    total = tl.full((ROWS, KIDS), 1.0 if LEAKY else 0.0, tl.float32)
    moment = tl.zeros((ROWS, KIDS), tl.float32)
    for out in range(J):
        matrix = tl.load(weight + out * P + matrix_place, mask=matrix_mask, other=0.0)
        target = tl.load(direction + out * P + target_place, mask=target_mask, other=0.0)
        grad = tl.load(grad_pooled + out * P + target_place, mask=target_mask, other=0.0)
        logits = _agreement(_spread(target, matrix, PRECISION), pose, IN, ROWS, KIDS)
        grad_coupling = _agreement(_spread(grad, matrix, PRECISION), pose, IN, ROWS, KIDS)
        larger = tl.maximum(largest, logits)
        fade, share = tl.exp(largest - larger), tl.exp(logits - larger)
        total = total * fade + share
        moment = moment * fade + share * grad_coupling
        largest = larger
    return largest, total, moment / total


@triton.jit(do_not_specialize=["blocks"])
@no_type_check
def pose_grad_kernel(
    poses,
    weight,
    direction,
    grad_pooled,
    partial,
    grad_poses,
    log_total,
    mean_grad,
    batch,
    in_caps,
    matrices,
    blocks,
    J: tl.constexpr,
    P: tl.constexpr,
    D: tl.constexpr,
    IN: tl.constexpr,
    ROWS: tl.constexpr,
    KIDS: tl.constexpr,
    POSE: tl.constexpr,
    FULL: tl.constexpr,
    ADD: tl.constexpr,
    LEAKY: tl.constexpr,
    PRECISION: tl.constexpr,
):
    """One iteration's `du_i = sum_j W_ij (c_ij g_j + db_ij V_j)` and, FULL, `dL/dV_j = sum_i db_ij vote_ij`.

    `db_ij = c_ij (g_j . vote_ij - sum_k c_ik g_k . vote_ik)`. The logs of the softmax's sums and the means of
    `dL/dc` are kept for `weight_grad_kernel`.
    """
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    row_mask = rows < batch
    target_place, target_mask = _target_places(rows, row_mask, P, J * P, POSE)
    slot = partial + tl.program_id(1).to(tl.int64) * batch * (J * P)
    for block in range(blocks):
        tl.debug_barrier()  # the slot is read back
        kid = (tl.program_id(1) * blocks + block) * KIDS
        child = kid + tl.arange(0, KIDS)
        pair, pair_mask = (
            (rows * in_caps)[:, None] + child[None, :],
            row_mask[:, None] & (child < in_caps)[None, :],
        )
        pose_place, pose_mask = _pose_places(rows * in_caps, kid, in_caps, row_mask, D, IN, KIDS)
        pose = tl.load(poses + pose_place, mask=pose_mask, other=0.0)
        place, mask = _matrix_places(kid, in_caps, matrices, D, P, J * P, IN, KIDS, POSE)
        if FULL:
            largest, total, mean = _softmax_grad_sums(
                pose,
                weight,
                place,
                mask,
                direction,
                grad_pooled,
                target_place,
                target_mask,
                J,
                P,
                IN,
                ROWS,
                KIDS,
                LEAKY,
                PRECISION,
            )
            tl.store(mean_grad + pair, mean, mask=pair_mask)
        else:
            largest, total = _softmax_sums(
                pose,
                weight,
                place,
                mask,
                direction,
                target_place,
                target_mask,
                J,
                P,
                IN,
                ROWS,
                KIDS,
                LEAKY,
                PRECISION,
            )
        tl.store(log_total + pair, largest + tl.log(total), mask=pair_mask)
        inverse = 1.0 / total
        grad_pose = tl.zeros((ROWS, IN * KIDS), tl.float32)
        for out in range(J):
            matrix = tl.load(weight + out * P + place, mask=mask, other=0.0)
            target = tl.load(direction + out * P + target_place, mask=target_mask, other=0.0)
            grad = tl.load(grad_pooled + out * P + target_place, mask=target_mask, other=0.0)
            spread, grad_spread = _spread(target, matrix, PRECISION), _spread(grad, matrix, PRECISION)
            coupling = tl.exp(_agreement(spread, pose, IN, ROWS, KIDS) - largest) * inverse
            grad_pose += _weigh(coupling, grad_spread, IN, ROWS, KIDS)
            if FULL:
                grad_logits = coupling * (_agreement(grad_spread, pose, IN, ROWS, KIDS) - mean)
                grad_pose += _weigh(grad_logits, spread, IN, ROWS, KIDS)
                weighed = _weigh(grad_logits, pose, IN, ROWS, KIDS)
                here = slot + out * P + target_place
                pooled = tl.dot(weighed, matrix, input_precision=PRECISION)
                pooled += tl.load(here, mask=target_mask & (block > 0), other=0.0)
                tl.store(here, pooled, mask=target_mask)
        if ADD:
            grad_pose += tl.load(grad_poses + pose_place, mask=pose_mask, other=0.0)
        tl.store(grad_poses + pose_place, grad_pose, mask=pose_mask)


@triton.jit(do_not_specialize=["span", "first_step", "iterations"])
@no_type_check
def weight_grad_kernel(
    poses,
    weight,
    direction,
    grad_pooled,
    log_total,
    mean_grad,
    grad_weight,
    batch,
    in_caps,
    matrices,
    span,
    first_step,
    iterations,
    J: tl.constexpr,
    P: tl.constexpr,
    D: tl.constexpr,
    IN: tl.constexpr,
    ROWS: tl.constexpr,
    KIDS: tl.constexpr,
    POSE: tl.constexpr,
    FULL: tl.constexpr,
    LEAKY: tl.constexpr,
    PRECISION: tl.constexpr,
):
    """`dW_j = sum u^T (c_j g_j + db_j V_j)` over iterations, for KIDS matrices and one out capsule.

    The sum runs over `span` of the (sample, position) pairs that vote with these matrices; `log_total` and
    `mean_grad` hold the iterations from the second on.
    """
    kid, out, split = tl.program_id(0) * KIDS, tl.program_id(1), tl.program_id(2)
    positions, column = in_caps // matrices, kid + tl.arange(0, KIDS)
    end = tl.minimum((split + 1) * span, batch * positions)
    place, mask = _matrix_places(kid, matrices, matrices, D, P, J * P, IN, KIDS, POSE)
    matrix = tl.load(weight + out * P + place, mask=mask, other=0.0)
    result = tl.zeros((POSE, IN * KIDS), tl.float32)
    for start in range(split * span, end, ROWS):
        voter = start + tl.arange(0, ROWS)
        rows, row_mask = voter // positions, voter < end
        pairs = rows * in_caps + (voter % positions) * matrices
        pair, pair_mask = pairs[:, None] + column[None, :], row_mask[:, None] & (column < matrices)[None, :]
        pose_place, pose_mask = _pose_places(pairs, kid, matrices, row_mask, D, IN, KIDS)
        pose = tl.load(poses + pose_place, mask=pose_mask, other=0.0)
        target_place, target_mask = _target_places(rows, row_mask, P, J * P, POSE)
        if FULL:
            grad = tl.load(grad_pooled + out * P + target_place, mask=target_mask, other=0.0)
            result = tl.dot(tl.trans(grad * (1.0 / (J + LEAKY))), pose, result, input_precision=PRECISION)
        for step in range(first_step, iterations):
            skip = tl.cast(step, tl.int64) * batch * (J * P) + out * P
            target = tl.load(direction + skip + target_place, mask=target_mask, other=0.0)
            grad = tl.load(grad_pooled + skip + target_place, mask=target_mask, other=0.0)
            stored = tl.cast(step - 1, tl.int64) * batch * in_caps + pair
            shift = tl.load(log_total + stored, mask=pair_mask, other=0.0)
            coupling = tl.exp(_agreement(_spread(target, matrix, PRECISION), pose, IN, ROWS, KIDS) - shift)
            weighed = _weigh(coupling, pose, IN, ROWS, KIDS)
            result = tl.dot(tl.trans(grad), weighed, result, input_precision=PRECISION)
            if FULL:
                mean = tl.load(mean_grad + stored, mask=pair_mask, other=0.0)
                grad_coupling = _agreement(_spread(grad, matrix, PRECISION), pose, IN, ROWS, KIDS)
                weighed = _weigh(coupling * (grad_coupling - mean), pose, IN, ROWS, KIDS)
                result = tl.dot(tl.trans(target), weighed, result, input_precision=PRECISION)
    to = grad_weight + split.to(tl.int64) * matrices * (D * J * P) + out * P
    tl.store(to + place, tl.trans(result), mask=mask)
