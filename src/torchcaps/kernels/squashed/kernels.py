"""Triton kernels of the squash of many poses: each pose is read once and written once.

Arithmetic is float32; the poses and their gradient may be half precision.
"""

# ruff: noqa: ANN001, ANN201, ANN202, PLR0913  to Triton an annotation means a compile-time constant
from typing import no_type_check  # Triton takes no kernel that run-time shape checks have wrapped

import triton
import triton.language as tl

from ..squash_kernels import pose_scale, squash, squash_grad


@triton.jit
@no_type_check
def _places(count, P: tl.constexpr, ROWS: tl.constexpr, POSE: tl.constexpr):
    """Which poses a program takes, where they lie, and the masks of both."""
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    number = tl.arange(0, POSE)
    exists = row < count
    return row, exists, row[:, None] * P + number[None, :], exists[:, None] & (number < P)[None, :]


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
def _squash_exponential(pose):
    scaled = pose * pose_scale(pose, 1)[:, None]
    length = tl.sqrt(tl.sum(scaled * scaled, 1) + 1e-8)
    return scaled * _factor(length)[:, None]


@triton.jit
@no_type_check
def _squash_exponential_grad(pose, grad):
    scale = pose_scale(pose, 1)
    scaled = pose * scale[:, None]
    length = tl.sqrt(tl.sum(scaled * scaled, 1) + 1e-8)
    along = _slope(length) / length * tl.sum(scaled * grad, 1)
    return (grad * _factor(length)[:, None] + scaled * along[:, None]) * scale[:, None]


@triton.jit
@no_type_check
def squash_poses_kernel(
    poses,
    squashed,
    lengths,
    count,
    P: tl.constexpr,
    ROWS: tl.constexpr,
    POSE: tl.constexpr,
    EXPONENTIAL: tl.constexpr,
):
    """Squashed poses and their lengths."""
    row, exists, place, mask = _places(count, P, ROWS, POSE)
    pose = tl.load(poses + place, mask=mask, other=0.0).to(tl.float32)
    short = _squash_exponential(pose) if EXPONENTIAL else squash(pose, 1)
    tl.store(squashed + place, short, mask=mask)
    tl.store(lengths + row, tl.sqrt(tl.sum(short * short, 1)), mask=exists)


@triton.jit
@no_type_check
def squash_poses_grad_kernel(
    poses,
    grad_squashed,
    grad_lengths,
    grad_poses,
    count,
    P: tl.constexpr,
    ROWS: tl.constexpr,
    POSE: tl.constexpr,
    EXPONENTIAL: tl.constexpr,
):
    """Gradient of `poses` from those of the squashed poses and of their lengths."""
    row, exists, place, mask = _places(count, P, ROWS, POSE)
    pose = tl.load(poses + place, mask=mask, other=0.0).to(tl.float32)
    short = _squash_exponential(pose) if EXPONENTIAL else squash(pose, 1)
    norm = tl.sqrt(tl.sum(short * short, 1))
    along = tl.load(grad_lengths + row, mask=exists, other=0.0)
    along = tl.where(norm > 0, along / tl.where(norm > 0, norm, 1.0), 0.0)  # 0 at a zero pose, as in PyTorch
    incoming = tl.load(grad_squashed + place, mask=mask, other=0.0) + short * along[:, None]
    grad = _squash_exponential_grad(pose, incoming) if EXPONENTIAL else squash_grad(pose, incoming, 1)
    tl.store(grad_poses + place, grad.to(grad_poses.dtype.element_ty), mask=mask)
