"""Where a kernel can run, and what it says where it cannot."""

from __future__ import annotations

from functools import lru_cache
from importlib.util import find_spec

import torch
from torch import Tensor

KERNEL_DEVICE = "cuda"  # tests change it: Triton's interpreter runs on a CPU
_HAS_TRITON = find_spec("triton") is not None
_FLOATS = (torch.float32, torch.bfloat16, torch.float16)


def is_for_kernel(tensor: Tensor) -> bool:
    """Whether a tensor lies where Triton kernels run."""
    return tensor.device.type == KERNEL_DEVICE


def kernel_obstacle(operation: str, *tensors: Tensor) -> str | None:
    """Why the Triton kernel of `operation` cannot take tensors of this device and dtype; None when it can."""
    if not all(map(is_for_kernel, tensors)):
        return f"the fused kernel for {operation} runs on CUDA only"
    if not _HAS_TRITON:
        return "the fused kernel for CUDA needs the triton package"
    if any(tensor.dtype not in _FLOATS for tensor in tensors):
        dtypes = " and ".join(str(tensor.dtype) for tensor in tensors)
        return f"the fused kernel computes in float32, not in {dtypes}"
    return None


@lru_cache(maxsize=1)
def has_numba() -> bool:
    """Whether passes for a CPU can be compiled."""
    return find_spec("numba") is not None


def round_up(size: int) -> int:
    """The next power of two: the sides of a kernel's tiles."""
    return 1 << (size - 1).bit_length()
