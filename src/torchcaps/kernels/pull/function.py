"""LOBSTER's pull on all weights of a network, in place, in one pass over each.

Plain PyTorch goes over the weights once for each operation of the formula, and stores what it has so far in
memory of the size of all weights. A kernel works on memory as it lies, so that any dense order of axes will
do. Results are those of the plain operations, to the bit.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.autograd.graph import increment_version

from ..availability import kernel_obstacle


@torch.no_grad()
def fused_shrink(weights: Sequence[Tensor], gradients: Sequence[Tensor], strength: Tensor) -> None:
    """Take `strength * weight * max(0, 1 - |gradient|)` from each weight, in place and without a derivative.

    Args:
        weights: On CUDA, in float32.
        gradients: One for each weight, which lies in memory as it does.
        strength: A single number on the same device. The kernel reads it, so that a captured launch sees it
            change.
    """
    if reason := pull_unsupported_reason(weights, gradients):
        raise ValueError(reason)
    if strength.numel() != 1 or strength.dtype != torch.float32 or strength.device != weights[0].device:
        raise ValueError(f"strength must be one float32 number on {weights[0].device}, got {strength!r}")
    from . import launch  # only here: a CPU install has no triton

    launch.shrink(weights, gradients, strength)
    increment_version(weights)


@torch.no_grad()
def fused_keep_zeros(weights: Sequence[Tensor], masks: Sequence[Tensor]) -> None:
    """Multiply each weight by its mask of ones and zeros, in place and without a derivative.

    Args:
        weights: On CUDA, in float32.
        masks: One for each weight, in float32 or bool, which lies in memory as the weight does.
    """
    if reason := pull_unsupported_reason(weights, masks):
        raise ValueError(reason)
    from . import launch

    launch.keep_zeros(weights, masks)
    increment_version(weights)


def pull_unsupported_reason(weights: Sequence[Tensor], others: Sequence[Tensor]) -> str | None:
    """Why the kernels cannot take these weights with their gradients or masks; None when they can."""
    if reason := kernel_obstacle("LOBSTER's pull", *weights):
        return reason
    if len({tensor.device for tensor in (*weights, *others)}) > 1:
        return "the fused kernel takes tensors of one device"
    if not {tensor.dtype for tensor in (*weights, *others)} <= {torch.float32, torch.bool}:
        return "the fused kernel takes weights and gradients in float32, and masks in float32 or bool"
    if not all(_lie_alike(*pair) for pair in zip(weights, others, strict=True)):
        return "the fused kernel takes weights whose gradients and masks lie in memory as they do"
    return None


def _lie_alike(one: Tensor, other: Tensor) -> bool:
    """Whether two tensors fill their memory without gaps, in the same order."""
    places = _long_axes(one)
    return one.shape == other.shape and places == _long_axes(other) and _is_dense(places)


def _long_axes(tensor: Tensor) -> list[tuple[int, int]]:
    """Step in memory and length of each axis; those of length one, whose steps mean nothing, are left out."""
    return [axis for axis in zip(tensor.stride(), tensor.shape, strict=True) if axis[1] != 1]


def _is_dense(axes: list[tuple[int, int]]) -> bool:
    step = 1
    for stride, length in sorted(axes):
        if stride != step:
            return False
        step *= length
    return True
