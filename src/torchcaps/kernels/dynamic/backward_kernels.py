"""Triton kernels for the gradients of fused dynamic routing, laid out as in `forward_kernels.py`."""

# ruff: noqa: ANN001, ANN201, PLR0913  to Triton an annotation means a compile-time constant
from typing import no_type_check  # Triton takes no kernel that run-time shape checks have wrapped

import triton
import triton.language as tl

from .forward_kernels import (
    agreement_with,
    matrix_places,
    multiply,
    pose_places,
    softmax_sums,
    spread_over,
    target_places,
    weigh,
)


@triton.jit(do_not_specialize=["blocks"])
@no_type_check
def pose_grad_kernel(
    poses,
    weight,
    direction,
    grad_pooled,
    partial,
    grad_poses,
    couplings,
    grads_logits,
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

    `db_ij = c_ij (g_j . vote_ij - sum_k c_ik g_k . vote_ik)`. `c` and `db` are kept for `weight_grad_kernel`,
    as `[J, batch, in_caps]`. Sums over many out capsules go to memory at every 32nd, which bounds rounding.
    """
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    row_mask = rows < batch
    target_place, target_mask = target_places(rows, row_mask, P, J * P, POSE)
    slot = partial + tl.program_id(1).to(tl.int64) * batch * (J * P)
    for block in range(blocks):
        tl.debug_barrier()  # the slot is read back
        kid = (tl.program_id(1) * blocks + block) * KIDS
        child = kid + tl.arange(0, KIDS)
        pair = (rows * in_caps)[:, None] + child[None, :]
        pair_mask = row_mask[:, None] & (child < in_caps)[None, :]
        pose_place, pose_mask = pose_places(rows * in_caps, kid, in_caps, row_mask, D, IN, KIDS)
        pose = tl.load(poses + pose_place, mask=pose_mask, other=0.0)
        place, mask = matrix_places(kid, in_caps, matrices, D, P, J * P, IN, KIDS, POSE)
        largest, total, mean = softmax_sums(
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
            FULL,
            LEAKY,
            PRECISION,
        )
        inverse = 1.0 / total
        for first in range(0, J, 32):
            grad_pose = tl.zeros((ROWS, IN * KIDS), tl.float32)
            for out in range(first, min(first + 32, J)):
                matrix = tl.load(weight + out * P + place, mask=mask, other=0.0)
                target = tl.load(direction + out * P + target_place, mask=target_mask, other=0.0)
                grad = tl.load(grad_pooled + out * P + target_place, mask=target_mask, other=0.0)
                spread = spread_over(target, matrix, PRECISION)
                grad_spread = spread_over(grad, matrix, PRECISION)
                coupling = tl.exp(agreement_with(spread, pose, IN) - largest) * inverse
                stored = tl.cast(out, tl.int64) * batch * in_caps
                tl.store(couplings + stored + pair, coupling, mask=pair_mask)
                grad_pose += weigh(coupling, grad_spread, IN)
                if FULL:
                    grad_logits = coupling * (agreement_with(grad_spread, pose, IN) - mean)
                    tl.store(grads_logits + stored + pair, grad_logits, mask=pair_mask)
                    grad_pose += weigh(grad_logits, spread, IN)
                    weighed = weigh(grad_logits, pose, IN)
                    here = slot + out * P + target_place
                    pooled = tl.load(here, mask=target_mask & (block > 0), other=0.0)
                    tl.store(here, pooled + multiply(weighed, matrix, PRECISION), mask=target_mask)
            if J > 32:
                tl.debug_barrier()  # the sums are read back
            is_begun = ADD | (first > 0)
            grad_pose += tl.load(grad_poses + pose_place, mask=pose_mask & is_begun, other=0.0)
            tl.store(grad_poses + pose_place, grad_pose, mask=pose_mask)


@triton.jit(do_not_specialize=["span", "first_step", "iterations", "step_size"])
@no_type_check
def weight_grad_kernel(
    poses,
    direction,
    grad_pooled,
    couplings,
    grads_logits,
    grad_weight,
    batch,
    in_caps,
    matrices,
    span,
    first_step,
    iterations,
    step_size,
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
    """`dW_j = sum u^T (c_j g_j + db_j V_j)` over iterations, for KIDS matrices and one out capsule.

    The sum runs over `span` of the (sample, position) pairs that vote with these matrices. `couplings` and
    `grads_logits`, `[iterations - first_step, J, batch, in_caps]`, are those of `pose_grad_kernel`; two
    iterations are `step_size` apart in `direction` and `grad_pooled`. ADD: to what is there already.
    """
    kid, out, split = tl.program_id(0) * KIDS, tl.program_id(1), tl.program_id(2)
    positions, column = in_caps // matrices, kid + tl.arange(0, KIDS)
    end = tl.minimum((split + 1) * span, batch * positions)
    result = tl.zeros((POSE, IN * KIDS), tl.float32)
    for start in range(split * span, end, ROWS):
        voter = start + tl.arange(0, ROWS)
        rows, row_mask = voter // positions, voter < end
        pairs = rows * in_caps + (voter % positions) * matrices
        pair, pair_mask = pairs[:, None] + column[None, :], row_mask[:, None] & (column < matrices)[None, :]
        pose_place, pose_mask = pose_places(pairs, kid, matrices, row_mask, D, IN, KIDS)
        pose = tl.load(poses + pose_place, mask=pose_mask, other=0.0)
        target_place, target_mask = target_places(rows, row_mask, P, J * P, POSE)
        if FULL:
            grad = tl.load(grad_pooled + out * P + target_place, mask=target_mask, other=0.0)
            result += multiply(tl.trans(grad * (1.0 / (J + LEAKY))), pose, PRECISION)
        for step in range(first_step, iterations):
            skip = tl.cast(step, tl.int64) * step_size + out * P
            stored = (tl.cast(step - first_step, tl.int64) * J + out) * batch * in_caps
            grad = tl.load(grad_pooled + skip + target_place, mask=target_mask, other=0.0)
            coupling = tl.load(couplings + stored + pair, mask=pair_mask, other=0.0)
            weighed = weigh(coupling, pose, IN)
            result += multiply(tl.trans(grad), weighed, PRECISION)
            if FULL:
                target = tl.load(direction + skip + target_place, mask=target_mask, other=0.0)
                grad_logits = tl.load(grads_logits + stored + pair, mask=pair_mask, other=0.0)
                weighed = weigh(grad_logits, pose, IN)
                result += multiply(tl.trans(target), weighed, PRECISION)
    place, mask = matrix_places(kid, matrices, matrices, D, P, J * P, IN, KIDS, POSE)
    to = grad_weight + split.to(tl.int64) * matrices * (D * J * P) + out * P + place
    result = tl.trans(result)
    if ADD:
        result += tl.load(to, mask=mask, other=0.0)
    tl.store(to, result, mask=mask)
