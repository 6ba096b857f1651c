"""Triton kernels between the passes over children: add partial sums and squash, and the derivative of that.

`squash`, `squash_exponential` and their derivatives are also parts of other kernels.
"""

# ruff: noqa: ANN001, ANN201, ANN202, PLR0913  to Triton an annotation means a compile-time constant
from typing import no_type_check  # Triton takes no kernel that run-time shape checks have wrapped

import triton
import triton.language as tl


@triton.jit
@no_type_check
def _places(J: tl.constexpr, P: tl.constexpr, OUT: tl.constexpr, POSE: tl.constexpr):
    """Program (sample, OUT out capsules): places inside `[J, P]`, inside `[batch, J, P]`, and the mask."""
    out = tl.program_id(1) * OUT + tl.arange(0, OUT)
    number = tl.arange(0, POSE)
    inside = out[:, None] * P + number[None, :]
    place = tl.program_id(0).to(tl.int64) * (J * P) + inside
    return inside, place, (out < J)[:, None] & (number < P)[None, :]


@triton.jit
@no_type_check
def _sum_slots(partial, num_slots, slot_size, place, mask):
    """Sum over the programs' slots, 16 loads in flight at a time."""
    total = tl.zeros(place.shape, tl.float32)
    for start in range(0, num_slots, 16):
        slot = start + tl.arange(0, 16)[:, None, None]
        values = tl.load(
            partial + slot.to(tl.int64) * slot_size + place[None, :, :],
            mask=mask[None, :, :] & (slot < num_slots),
            other=0.0,
        )
        total += tl.sum(values, 0)
    return total


@triton.jit
@no_type_check
def _shrink(squared):
    """`n / (1 + n)` of the squash, exact for small n and not inf / inf for large."""
    return tl.where(squared < 1.0, squared / (1.0 + squared), 1.0 - 1.0 / (1.0 + squared))


@triton.jit
@no_type_check
def _scale(pooled, AXIS: tl.constexpr):
    """What keeps squared lengths finite; one over `core.squash.squash_divisor`."""
    return 1e8 / tl.maximum(tl.max(tl.abs(pooled), AXIS), 1e8)


@triton.jit
@no_type_check
def squash(pooled, AXIS: tl.constexpr):
    """Poses along AXIS, squashed; one that holds an infinity becomes NaN."""
    pooled = pooled * tl.expand_dims(_scale(pooled, AXIS), AXIS)
    squared = tl.sum(pooled * pooled, AXIS)
    return pooled * tl.expand_dims(tl.rsqrt(squared + 1e-8) * _shrink(squared), AXIS)


@triton.jit
@no_type_check
def squash_grad(pooled, grad, AXIS: tl.constexpr):
    """Gradient of `pooled`, from that of `squash(pooled, AXIS)`."""
    scale = _scale(pooled, AXIS)
    pooled = pooled * tl.expand_dims(scale, AXIS)
    squared = tl.sum(pooled * pooled, AXIS)
    inverse, shrink = tl.rsqrt(squared + 1e-8), _shrink(squared)
    twice_slope = inverse * (2.0 / ((1.0 + squared) * (1.0 + squared)) - shrink * inverse * inverse)
    along = twice_slope * tl.sum(pooled * grad, AXIS)
    across = grad * tl.expand_dims(shrink * inverse, AXIS)
    return (across + pooled * tl.expand_dims(along, AXIS)) * tl.expand_dims(scale, AXIS)


@triton.jit
@no_type_check
def _factor(length):
    """`(1 - exp(-n)) / n`: below a half by its series, because the difference would lose digits."""
    series = 1.0 - length / 9.0
    for term in tl.static_range(8, 1, -1):
        series = 1.0 - series * length / term
    return tl.where(length < 0.5, series, (1.0 - tl.exp(-length)) / tl.maximum(length, 0.5))


@triton.jit
@no_type_check
def _slope(length):
    """The derivative of `_factor`: below a half by its series, whose k-th number is (-1)^k k / (k + 1)!."""
    series = -1 / 5760 + length / 45360
    series = -1 / 144 + length * (1 / 840 + length * series)
    series = -1 / 8 + length * (1 / 30 + length * series)
    series = -1 / 2 + length * (1 / 3 + length * series)
    return tl.where(length < 0.5, series, (tl.exp(-length) - _factor(length)) / tl.maximum(length, 0.5))


@triton.jit
@no_type_check
def squash_exponential(pose):
    """Poses along the second axis, squashed by `1 - exp(-n)`; one that holds an infinity becomes NaN."""
    scaled = pose * _scale(pose, 1)[:, None]
    length = tl.sqrt(tl.sum(scaled * scaled, 1) + 1e-8)
    return scaled * _factor(length)[:, None]


@triton.jit
@no_type_check
def squash_exponential_grad(pose, grad):
    """Gradient of `pose`, from that of `squash_exponential(pose)`."""
    scale = _scale(pose, 1)
    scaled = pose * scale[:, None]
    length = tl.sqrt(tl.sum(scaled * scaled, 1) + 1e-8)
    along = _slope(length) / length * tl.sum(scaled * grad, 1)
    return (grad * _factor(length)[:, None] + scaled * along[:, None]) * scale[:, None]


@triton.jit
@no_type_check
def with_lengths_grad(poses, grad, grad_lengths, AXIS: tl.constexpr):
    """`grad` of poses, and what that of their lengths adds to it: nothing at a zero pose, as in PyTorch."""
    norm = tl.sqrt(tl.sum(poses * poses, AXIS))
    along = tl.where(norm > 0, grad_lengths / tl.where(norm > 0, norm, 1.0), 0.0)
    return grad + poses * tl.expand_dims(along, AXIS)


@triton.jit(do_not_specialize=["num_slots"])
@no_type_check
def squash_kernel(
    partial,
    bias,
    pooled,
    direction,
    result,
    num_slots,
    slot_size,
    J: tl.constexpr,
    P: tl.constexpr,
    OUT: tl.constexpr,
    POSE: tl.constexpr,
    BIAS: tl.constexpr,
    FIRST: tl.constexpr,
    LAST: tl.constexpr,
):
    """`s` from its partial sums, and `v = squash(s)`; result is the next `V`, `V + v`, or the last `v`."""
    inside, place, mask = _places(J, P, OUT, POSE)
    total = _sum_slots(partial, num_slots, slot_size, place, mask)
    if BIAS:
        total += tl.load(bias + inside, mask=mask, other=0.0)
    tl.store(pooled + place, total, mask=mask)
    output = squash(total, 1)
    if FIRST:
        tl.store(direction + place, tl.zeros((OUT, POSE), tl.float32), mask=mask)
    elif not LAST:
        output += tl.load(direction + place, mask=mask, other=0.0)
    tl.store(result + place, output, mask=mask)


@triton.jit(do_not_specialize=["num_slots"])
@no_type_check
def squash_grad_kernel(
    grad,
    partial,
    pooled,
    grad_pooled,
    grad_sum,
    num_slots,
    slot_size,
    J: tl.constexpr,
    P: tl.constexpr,
    OUT: tl.constexpr,
    POSE: tl.constexpr,
    GRAD: tl.constexpr,
    PARTIAL: tl.constexpr,
):
    """`dL/ds` from `dL/dv = grad + sum of partial`, which is kept: a `v` is part of all later `V`."""
    _, place, mask = _places(J, P, OUT, POSE)
    incoming = tl.zeros((OUT, POSE), tl.float32)
    if GRAD:
        incoming += tl.load(grad + place, mask=mask, other=0.0)
    if PARTIAL:
        incoming += _sum_slots(partial, num_slots, slot_size, place, mask)
        tl.store(grad_sum + place, incoming, mask=mask)
    total = tl.load(pooled + place, mask=mask, other=0.0)
    result = squash_grad(total, incoming, 1)
    tl.store(grad_pooled + place, result, mask=mask)
