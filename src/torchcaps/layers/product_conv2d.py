"""Convolutions that are slow as such, written as products; their parameters are those of `nn.Conv2d`."""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from torchcaps.core import without_autocast
from torchcaps.kernels import fused_strided_conv, is_for_kernel, strided_conv_unsupported_reason

_HALVES = (torch.bfloat16, torch.float16)
_LEAST_SIDE = 9  # of a strided convolution with kernels of its own; they were not timed for smaller ones
_ALIGNED = 8  # values in a row: matrix units need this alignment for 16-bit numbers


class StemConv2d(nn.Conv2d):
    """A first convolution without padding: on a GPU a product of gathered windows with the kernels.

    For images of one to three channels cuDNN pads to eight, and writes a layout that the next convolution has
    to change; the product writes channels last.
    """

    def forward(
        self, images: Float[Tensor, "batch channels height width"]
    ) -> Float[Tensor, "batch out rows columns"]:
        """What `nn.Conv2d` gives."""
        return convolve_by_product(images, self) if images.is_cuda else super().forward(images)


def convolve_by_product(
    images: Float[Tensor, "batch channels height width"], conv: nn.Conv2d
) -> Float[Tensor, "batch out rows columns"]:
    """The convolution of an unpadded, ungrouped layer as one matrix product, channels last in memory.

    In half precision the bias is the kernels' value for a column of ones, so that its gradient is part of
    theirs: the sum over all places alone would take longer. A compiler forms that sum on its way.
    """
    (kernel, _), (stride, _) = conv.kernel_size, conv.stride
    windows = images.unfold(2, kernel, stride).unfold(3, kernel, stride).permute(0, 2, 3, 1, 4, 5)
    places, length = windows.shape[:3], conv.weight[0].numel()
    dtype, learnt, bias = _product_dtype(images), conv.weight.flatten(1), conv.bias
    if bias is not None and dtype in _HALVES and not torch.compiler.is_compiling():
        learnt, bias = torch.cat((learnt, bias[:, None]), 1), None
    rest = -learnt.shape[1] % _ALIGNED
    columns = images.new_zeros(*places, learnt.shape[1] + rest, dtype=dtype)
    columns[..., :length].view(windows.shape).copy_(windows)
    columns[..., length : learnt.shape[1]] = 1
    return F.linear(columns, F.pad(learnt, (0, rest)), bias).permute(0, 3, 1, 2)


def _product_dtype(maps: Tensor) -> torch.dtype:
    """The precision of products with `maps`: that of autocast, where it is on."""
    kind = maps.device.type
    return torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else maps.dtype


def convolve_with_stride(
    features: Float[Tensor, "batch channels height width"], conv: nn.Conv2d
) -> Float[Tensor, "batch out rows columns"]:
    """A convolution, by the kernels for one without padding where they can take it and are faster."""
    is_worth_it = conv.stride[0] > 1 and conv.kernel_size[0] >= _LEAST_SIDE
    if not (is_for_kernel(features) and is_worth_it) or any(conv.padding):
        return conv(features)
    dtype = _product_dtype(features)
    maps, weight = features.to(dtype), conv.weight.to(dtype)
    if strided_conv_unsupported_reason(maps, weight) is not None:
        return conv(features)
    return fused_strided_conv(maps, weight, conv.bias, conv.stride[0])


def rectify(
    maps: Float[Tensor, "batch channels height width"],
) -> Float[Tensor, "batch channels height width"]:
    """`maps.relu()` of the result of a `StemConv2d`, in place on a CPU.

    On a GPU the result is a view of a product, and autograd copies the gradient of a view changed in place.
    """
    return maps.relu() if maps.is_cuda else maps.relu_()


def covers_map(conv: nn.Conv2d, features: Tensor) -> bool:
    """Whether a convolution is as wide as its input, so that it has one position."""
    return conv.kernel_size == features.shape[-2:] and not any(conv.padding)


def is_depthwise(conv: nn.Conv2d) -> bool:
    """Whether each channel has one kernel of its own."""
    return conv.groups == conv.in_channels == conv.out_channels


def project_map(
    features: Float[Tensor, "batch channels height width"], conv: nn.Conv2d
) -> Float[Tensor, "batch out 1 1"]:
    """An ungrouped convolution that covers its map: a matrix product, many times as fast on a CPU.

    The values of a map are taken in the order that the kernels have in memory, so that no kernel is copied.
    """
    weight = conv.weight
    if not weight.is_contiguous():  # channels last
        features, weight = features.permute(0, 2, 3, 1), weight.permute(0, 2, 3, 1)
    return F.linear(features.flatten(1), weight.flatten(1), conv.bias)[..., None, None]


def reduce_map(
    features: Float[Tensor, "batch channels height width"], conv: nn.Conv2d
) -> Float[Tensor, "batch channels 1 1"]:
    """A depthwise convolution that covers its map: one weighted sum of each channel, in float32."""
    with without_autocast(features):
        sums = (features.to(conv.weight.dtype) * conv.weight.squeeze(1)).sum((2, 3), keepdim=True)
        return sums if conv.bias is None else sums + conv.bias[:, None, None]


def convolve_map(
    features: Float[Tensor, "batch channels height width"], conv: nn.Conv2d
) -> Float[Tensor, "batch channels 1 1"]:
    """A depthwise convolution that covers its map, with gradients that are products.

    On a CPU the backward pass of such a convolution takes many times as long as its forward pass.
    """
    result: Tensor = _CoveringConv.apply(features, conv.weight, conv.bias)  # type: ignore[no-untyped-call]
    return result


class _CoveringConv(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, features: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(features, weight)
        ctx.has_bias = bias is not None
        return F.conv2d(features, weight, bias, groups=len(weight))

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        features, weight = ctx.saved_tensors
        along = grad.permute(0, 2, 3, 1)
        # with the channels last in memory, as the maps below have them
        grad_features = along * weight.squeeze(1).permute(1, 2, 0).contiguous()
        grad_weight = (along * features.permute(0, 2, 3, 1)).sum(0).permute(2, 0, 1).unsqueeze(1)
        return grad_features.permute(0, 3, 1, 2), grad_weight, grad.sum((0, 2, 3)) if ctx.has_bias else None
