"""Triton kernels of the squash of many poses: each pose is read once and written once.

Arithmetic is float32; the poses and their gradient may be half precision.
"""

# ruff: noqa: ANN001, ANN201, ANN202, PLR0913  to Triton an annotation means a compile-time constant
from typing import no_type_check  # Triton takes no kernel that run-time shape checks have wrapped

import triton
import triton.language as tl

from ..squash_kernels import (
    squash,
    squash_exponential,
    squash_exponential_grad,
    squash_grad,
    with_lengths_grad,
)


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
    short = squash_exponential(pose) if EXPONENTIAL else squash(pose, 1)
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
    short = squash_exponential(pose) if EXPONENTIAL else squash(pose, 1)
    along = tl.load(grad_lengths + row, mask=exists, other=0.0)
    incoming = tl.load(grad_squashed + place, mask=mask, other=0.0)
    incoming = with_lengths_grad(short, incoming, along, 1)
    grad = squash_exponential_grad(pose, incoming) if EXPONENTIAL else squash_grad(pose, incoming, 1)
    tl.store(grad_poses + place, grad.to(grad_poses.dtype.element_ty), mask=mask)
