"""A convolution without padding in half precision, as a function that autograd knows.

Most values of a small map lie near its border, where few windows see them: a product over all of a kernel at
every place would be mostly with nothing. Here each place sums over the windows that see it. Forwards, the sum
over a window is divided, so that a small batch keeps all processors busy. The gradient of the kernels is
PyTorch's.
"""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from ..availability import kernel_obstacle
from ..operator import operator

_LEAST_BATCH = 64  # smaller ones leave a tile of 128 samples mostly empty
_LEAST_CHANNELS = 16  # of a step of a product
_MOST_WEIGHTS = 2**31 - 1  # their places are whole numbers of 32 bits
_HALVES = (torch.bfloat16, torch.float16)


def fused_strided_conv(
    maps: Float[Tensor, "batch channels height width"],
    weight: Float[Tensor, "out channels side side"],
    bias: Float[Tensor, " out"] | None,
    stride: int,
) -> Float[Tensor, "batch out rows columns"]:
    """`F.conv2d` without padding, summed in float32; the result has channels last in memory.

    Args:
        maps: On CUDA, in half precision.
        weight: In the precision of the maps.
        bias: In any precision; its gradient is as exact.
        stride: Step of the kernel.
    """
    if reason := strided_conv_unsupported_reason(maps, weight):
        raise ValueError(reason)
    result: Tensor = _StridedConv.apply(maps, weight, bias, stride)
    return result


def strided_conv_unsupported_reason(maps: Tensor, weight: Tensor) -> str | None:
    """Why `fused_strided_conv` cannot take these maps, in one sentence; None when it can."""
    out, channels, height, width = weight.shape
    if height != width or maps.shape[1] != channels:
        return "the fused convolution has square kernels and no groups"
    if maps.shape[2] < height or maps.shape[3] < width:
        return "the kernel is larger than the map"
    if channels % _LEAST_CHANNELS or out % _LEAST_CHANNELS:
        return f"the fused convolution takes multiples of {_LEAST_CHANNELS} channels"
    if weight.numel() > _MOST_WEIGHTS:
        return f"the fused convolution takes at most {_MOST_WEIGHTS:,} weights"
    if len(maps) < _LEAST_BATCH:
        return f"the fused convolution takes at least {_LEAST_BATCH} maps"
    if maps.dtype not in _HALVES or weight.dtype != maps.dtype:
        return "the fused convolution computes in half precision"
    return kernel_obstacle("a convolution", maps, weight)


class _StridedConv(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, maps: Tensor, weight: Tensor, bias: Tensor | None, stride: int) -> Tensor:
        ctx.save_for_backward(maps, weight, bias)
        ctx.stride = stride
        return _conv_op(maps, weight, bias, stride)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        maps, weight, bias = ctx.saved_tensors
        wanted = ctx.needs_input_grad
        if torch.is_grad_enabled():  # create_graph: the plain function has a derivative of its derivative
            inputs = [
                each for each, is_wanted in zip((maps, weight, bias), wanted, strict=False) if is_wanted
            ]
            plain = F.conv2d(maps, weight, None if bias is None else bias.to(maps.dtype), ctx.stride)
            found = iter(torch.autograd.grad(plain, inputs, grad, create_graph=True))
            return *(next(found) if is_wanted else None for is_wanted in wanted[:3]), None
        return (
            _grad_maps_op(grad, weight, maps, ctx.stride) if wanted[0] else None,
            _grad_weight(grad, maps, weight, ctx.stride) if wanted[1] else None,
            _grad_bias_op(grad).to(bias.dtype) if wanted[2] else None,
            None,
        )


def _grad_weight(grad: Tensor, maps: Tensor, weight: Tensor, stride: int) -> Tensor:
    sizes = [len(weight)], [stride, stride], [0, 0], [1, 1], False, [0, 0], 1
    found: Tensor = torch.ops.aten.convolution_backward(grad, maps, weight, *sizes, [False, True, False])[1]
    return found


@operator("strided_conv", "(Tensor maps, Tensor weight, Tensor? bias, int stride) -> Tensor")
def _conv_op(maps: Tensor, weight: Tensor, bias: Tensor | None, stride: int) -> Tensor:
    from . import launch  # only here: a CPU install has no triton

    return launch.convolve(maps, weight, bias, stride)


@_conv_op.register_fake
def _(maps, weight, bias, stride):  # noqa: ANN001, ANN202
    rows, columns = ((size - weight.shape[2]) // stride + 1 for size in maps.shape[2:])
    return maps.new_empty(len(maps), rows, columns, len(weight)).permute(0, 3, 1, 2)


@operator("strided_conv_grad_maps", "(Tensor grad, Tensor weight, Tensor maps, int stride) -> Tensor")
def _grad_maps_op(grad: Tensor, weight: Tensor, maps: Tensor, stride: int) -> Tensor:
    from . import launch

    return launch.grad_of_maps(grad, weight, maps, stride)


@_grad_maps_op.register_fake
def _(grad, weight, maps, stride):  # noqa: ANN001, ANN202
    batch, channels, height, width = maps.shape
    return grad.new_empty(batch, height, width, channels).permute(0, 3, 1, 2)


@operator("strided_conv_grad_bias", "(Tensor grad) -> Tensor")
def _grad_bias_op(grad: Tensor) -> Tensor:
    from . import launch

    return launch.grad_of_bias(grad)


@_grad_bias_op.register_fake
def _(grad):  # noqa: ANN001, ANN202
    return grad.new_empty(grad.shape[1], dtype=torch.float32)
