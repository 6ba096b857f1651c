"""Launches of LOBSTER's pull on CUDA; all tensors are dense, and those of one place lie alike."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from triton import cdiv

from .kernels import keep_zeros_kernel, shrink_kernel

_NUMBERS = 1024  # of a program: four of a thread, which it reads at once
_TENSORS = 16  # of a launch; the kernel has code for each of them


def shrink(weights: Sequence[Tensor], gradients: Sequence[Tensor], strength: Tensor) -> None:
    """Pull weights to zero by the share that their gradients leave."""
    _launch(shrink_kernel, weights, gradients, strength)


def keep_zeros(weights: Sequence[Tensor], masks: Sequence[Tensor]) -> None:
    """Multiply weights by masks."""
    _launch(keep_zeros_kernel, weights, masks)


def _launch(kernel: Any, weights: Sequence[Tensor], others: Sequence[Tensor], *scalars: Tensor) -> None:
    for first in range(0, len(weights), _TENSORS):
        some = slice(first, first + _TENSORS)
        counts = tuple(weight.numel() for weight in weights[some])
        programs = sum(cdiv(count, _NUMBERS) for count in counts)
        if programs:
            with torch.cuda.device_of(weights[0]):
                kernel[(programs,)](
                    tuple(weights[some]),
                    tuple(others[some]),
                    counts,
                    *scalars,
                    BLOCK=_NUMBERS,
                    num_warps=8,
                    enable_fp_fusion=False,
                )
