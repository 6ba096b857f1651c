"""Triton kernels of fused dynamic routing; `launch.py` launches them and says what each is for.

`vote . target` is `pose . (matrix @ target)`, so a vote is never formed: for a tile of ROWS samples and KIDS
children, `spread = target @ matrix^T` is one matrix product for each out capsule, `[ROWS, IN * KIDS]`, the
numbers of a pose outermost so that summing over them needs no exchange between threads. Out capsules are
looped over, twice where a softmax over them is needed, so any number of them fits and none is padded. Sums
over children go to one slot for each program and are added later in a fixed order, without atomics.
"""

# ruff: noqa: ANN001, ANN201, ANN202, PLR0913  to Triton an annotation means a compile-time constant
from typing import no_type_check  # Triton takes no kernel that run-time shape checks have wrapped

import triton
import triton.language as tl


@triton.jit
@no_type_check
def pose_places(pairs, kid, limit, row_mask, D: tl.constexpr, IN: tl.constexpr, KIDS: tl.constexpr):
    """Places `[ROWS, IN * KIDS]` of the poses of KIDS children from `kid` on, and their mask."""
    column = tl.arange(0, IN * KIDS)
    number, child = column // KIDS, kid + column % KIDS
    place = (pairs * D)[:, None] + (child * D + number)[None, :]
    return place, row_mask[:, None] & ((child < limit) & (number < D))[None, :]


@triton.jit
@no_type_check
def matrix_places(
    kid,
    limit,
    matrices,
    D: tl.constexpr,
    P: tl.constexpr,
    JP: tl.constexpr,
    IN: tl.constexpr,
    KIDS: tl.constexpr,
    POSE: tl.constexpr,
):
    """Places `[IN * KIDS, POSE]` of KIDS children's matrices for the first out capsule, and their mask."""
    row, column = tl.arange(0, IN * KIDS), tl.arange(0, POSE)
    number, child = row // KIDS, kid + row % KIDS
    start = (child % matrices) * (D * JP) + number * JP
    return start[:, None] + column[None, :], ((child < limit) & (number < D))[:, None] & (column < P)[None, :]


@triton.jit
@no_type_check
def target_places(rows, row_mask, P: tl.constexpr, JP: tl.constexpr, POSE: tl.constexpr):
    """Places of the first out capsule's poses `[ROWS, POSE]` in a `[batch, J, P]` tensor, and their mask."""
    column = tl.arange(0, POSE)
    return (rows * JP)[:, None] + column[None, :], row_mask[:, None] & (column < P)[None, :]


@triton.jit
@no_type_check
def _coarse(values):
    """The nearest numbers that tf32 can hold."""
    return ((values.to(tl.int32, bitcast=True) + 4096) & -8192).to(tl.float32, bitcast=True)


@triton.jit
@no_type_check
def multiply(left, right, PRECISION: tl.constexpr):
    """`left @ right`; "tf32x3" as Triton has it, without the care for infinities that is much of its cost.

    What tf32 cannot hold of the remainders is below float32's rounding. Sums over tiles are taken outside,
    rounded to nearest: matrix units cut what does not fit.
    """
    if PRECISION == "tf32x3":
        left_coarse, right_coarse = _coarse(left), _coarse(right)
        result = tl.dot(left - left_coarse, right_coarse, input_precision="tf32")
        result = tl.dot(left_coarse, right - right_coarse, result, input_precision="tf32")
        result = tl.dot(left_coarse, right_coarse, result, input_precision="tf32")
    else:
        result = tl.dot(left, right, input_precision=PRECISION)
    return result


@triton.jit
@no_type_check
def spread_over(target, matrix, PRECISION: tl.constexpr):
    """`target @ matrix^T`, whose product with a pose is `vote . target`."""
    return multiply(target, tl.trans(matrix), PRECISION)


@triton.jit
@no_type_check
def agreement_with(spread, pose, IN: tl.constexpr):
    """`vote . target` for every pair, `[ROWS, KIDS]`."""
    return tl.sum(tl.reshape(spread * pose, (pose.shape[0], IN, pose.shape[1] // IN)), 1)


@triton.jit
@no_type_check
def weigh(share, vectors, IN: tl.constexpr):
    """Every pair's vector times its share, `[ROWS, IN * KIDS]`."""
    weighed = tl.reshape(vectors, (share.shape[0], IN, share.shape[1])) * share[:, None, :]
    return tl.reshape(weighed, (share.shape[0], IN * share.shape[1]))


@triton.jit
@no_type_check
def fade_and_add(total, lost, fade, term, MANY: tl.constexpr):
    """`total * fade + term`; of MANY terms, what rounding takes from the sum is gathered in `lost`."""
    kept = total * fade
    added = kept + term
    if MANY:
        share = added - kept
        lost = lost * fade + ((kept - (added - share)) + (term - share))
    return added, lost


@triton.jit
@no_type_check
def softmax_sums(
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
    FULL: tl.constexpr,
    LEAKY: tl.constexpr,
    PRECISION: tl.constexpr,
):
    """Largest logit of every pair, and the sum of `exp(logit - largest)`; LEAKY adds a logit fixed at 0.

    FULL: also the mean of `dL/dc` under the couplings, for which alone `grad_pooled` is read.
    """
    largest = tl.full((pose.shape[0], pose.shape[1] // IN), 0.0 if LEAKY else float("-inf"), tl.float32)
    total = tl.full(largest.shape, 1.0 if LEAKY else 0.0, tl.float32)
    moment = tl.zeros(largest.shape, tl.float32)
    total_lost, moment_lost = moment, moment
    for out in range(J):
        matrix = tl.load(weight + out * P + matrix_place, mask=matrix_mask, other=0.0)
        target = tl.load(direction + out * P + target_place, mask=target_mask, other=0.0)
        if FULL:
            grad = tl.load(grad_pooled + out * P + target_place, mask=target_mask, other=0.0)
        logits = agreement_with(spread_over(target, matrix, PRECISION), pose, IN)
        if FULL:
            grad_coupling = agreement_with(spread_over(grad, matrix, PRECISION), pose, IN)
        larger = tl.maximum(largest, logits)
        fade, share = tl.exp(largest - larger), tl.exp(logits - larger)
        total, total_lost = fade_and_add(total, total_lost, fade, share, J > 32)
        if FULL:
            moment, moment_lost = fade_and_add(moment, moment_lost, fade, share * grad_coupling, J > 32)
        largest = larger
    total += total_lost
    return largest, total, (moment + moment_lost) / total


@triton.jit(do_not_specialize=["blocks"])
@no_type_check
def pool_kernel(
    poses,
    weight,
    direction,
    partial,
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
    UNIFORM: tl.constexpr,
    LEAKY: tl.constexpr,
    PRECISION: tl.constexpr,
):
    """Sum of `c_ij vote_ij` over `blocks` of KIDS children, into a slot of its own; UNIFORM: `c = 1 / J`."""
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    row_mask = rows < batch
    target_place, target_mask = target_places(rows, row_mask, P, J * P, POSE)
    slot = partial + tl.program_id(1).to(tl.int64) * batch * (J * P)
    for block in range(blocks):
        tl.debug_barrier()  # the slot is read back
        kid = (tl.program_id(1) * blocks + block) * KIDS
        pose_place, pose_mask = pose_places(rows * in_caps, kid, in_caps, row_mask, D, IN, KIDS)
        pose = tl.load(poses + pose_place, mask=pose_mask, other=0.0)
        place, mask = matrix_places(kid, in_caps, matrices, D, P, J * P, IN, KIDS, POSE)
        if UNIFORM:
            weighed = pose * (1.0 / (J + LEAKY))
        else:
            largest, total, _ = softmax_sums(
                pose,
                weight,
                place,
                mask,
                direction,
                direction,
                target_place,
                target_mask,
                J,
                P,
                IN,
                False,
                LEAKY,
                PRECISION,
            )
            inverse = 1.0 / total
        for out in range(J):
            matrix = tl.load(weight + out * P + place, mask=mask, other=0.0)
            if not UNIFORM:
                target = tl.load(direction + out * P + target_place, mask=target_mask, other=0.0)
                logits = agreement_with(spread_over(target, matrix, PRECISION), pose, IN)
                weighed = weigh(tl.exp(logits - largest) * inverse, pose, IN)
            here = slot + out * P + target_place
            pooled = tl.load(here, mask=target_mask & (block > 0), other=0.0)
            tl.store(here, pooled + multiply(weighed, matrix, PRECISION), mask=target_mask)


@triton.jit(do_not_specialize=["blocks"])
@no_type_check
def coupling_kernel(
    poses,
    weight,
    direction,
    coupling,
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
    LEAKY: tl.constexpr,
    PRECISION: tl.constexpr,
):
    """The couplings of `blocks` of KIDS children, `[batch, in_caps, J]`."""
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    row_mask = rows < batch
    target_place, target_mask = target_places(rows, row_mask, P, J * P, POSE)
    for block in range(blocks):
        kid = (tl.program_id(1) * blocks + block) * KIDS
        child = kid + tl.arange(0, KIDS)
        pair = (rows * in_caps)[:, None] + child[None, :]
        pair_mask = row_mask[:, None] & (child < in_caps)[None, :]
        pose_place, pose_mask = pose_places(rows * in_caps, kid, in_caps, row_mask, D, IN, KIDS)
        pose = tl.load(poses + pose_place, mask=pose_mask, other=0.0)
        place, mask = matrix_places(kid, in_caps, matrices, D, P, J * P, IN, KIDS, POSE)
        largest, total, _ = softmax_sums(
            pose,
            weight,
            place,
            mask,
            direction,
            direction,
            target_place,
            target_mask,
            J,
            P,
            IN,
            False,
            LEAKY,
            PRECISION,
        )
        for out in range(J):
            matrix = tl.load(weight + out * P + place, mask=mask, other=0.0)
            target = tl.load(direction + out * P + target_place, mask=target_mask, other=0.0)
            logits = agreement_with(spread_over(target, matrix, PRECISION), pose, IN)
            tl.store(coupling + pair.to(tl.int64) * J + out, tl.exp(logits - largest) / total, mask=pair_mask)
