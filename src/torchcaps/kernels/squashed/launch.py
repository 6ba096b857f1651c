"""Launches of the squash of many poses on CUDA."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import triton
from torch import Tensor
from triton import cdiv

from .kernels import squash_poses_grad_kernel, squash_poses_kernel

_NUMBERS = 1024  # of a program, with poses rounded up to a power of two


def squash_poses(poses: Tensor, exponential: bool) -> tuple[Tensor, Tensor]:
    """Squashed poses and their lengths, in float32."""
    squashed = torch.empty_like(poses, dtype=torch.float32)
    lengths = poses.new_empty(poses.shape[:-1], dtype=torch.float32)
    _launch(squash_poses_kernel, exponential, poses, squashed, lengths)
    return squashed, lengths


def squash_poses_backward(poses: Tensor, grads: Sequence[Tensor], exponential: bool) -> Tensor:
    """The gradient of the poses, in their precision, from those of squashed poses and lengths."""
    grad_poses = torch.empty_like(poses)
    _launch(squash_poses_grad_kernel, exponential, poses, *grads, grad_poses)
    return grad_poses


def _launch(kernel: Any, exponential: bool, poses: Tensor, *tensors: Tensor) -> None:
    pose = poses.shape[-1]
    count, block = poses.numel() // pose, triton.next_power_of_2(pose)
    rows = max(1, _NUMBERS // block)
    sizes = {"P": pose, "ROWS": rows, "POSE": block, "EXPONENTIAL": exponential}
    if count:
        with torch.cuda.device_of(poses):
            kernel[(cdiv(count, rows),)](poses, *tensors, count, **sizes, num_warps=4)
