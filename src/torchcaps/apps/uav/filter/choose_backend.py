"""The fastest code for a device."""

from __future__ import annotations

import torch

from torchcaps.core import need

from .backend import Backend
from .plain import PlainBackend


def fast_backend(device: torch.device) -> Backend:
    """Triton kernels on CUDA, compiled passes on the processor, plain PyTorch elsewhere."""
    if device.type == "cuda":
        from .cuda import CudaBackend

        return CudaBackend(device)
    if device.type == "cpu":
        need("numba", "the filter")
        from .compiled import CompiledBackend

        return CompiledBackend()
    return PlainBackend(device=device)
