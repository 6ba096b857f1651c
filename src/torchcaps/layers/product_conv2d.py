"""Convolutions that are slow as they are, computed otherwise; their parameters are those of `nn.Conv2d`."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from torchcaps.core.precision import without_autocast

_ALIGNED = 8  # values in a row: matrix units need this alignment for 16-bit numbers


class StemConv2d(nn.Conv2d):
    """A first convolution without padding, whose maps have their channels last in memory.

    For images of one to three channels cuDNN pads to eight, and writes a layout that the next convolution has
    to change; on a GPU it is a product of gathered windows with the kernels. On a CPU the layout of the
    images decides about that of all maps above them, and convolutions are faster with channels last.
    """

    def forward(
        self, images: Float[Tensor, "batch channels height width"]
    ) -> Float[Tensor, "batch out rows columns"]:
        """What `nn.Conv2d` gives."""
        if images.is_cuda:
            return convolve_by_product(images, self)
        return super().forward(channels_last(images) if images.device.type == "cpu" else images)


def channels_last(images: Float[Tensor, "batch channels height width"]) -> Tensor:
    """The same images with channels last in memory, told by the strides even where there is one channel."""
    return images.permute(0, 2, 3, 1).contiguous().permute(0, 3, 1, 2)


def convolve_by_product(
    images: Float[Tensor, "batch channels height width"], conv: nn.Conv2d
) -> Float[Tensor, "batch out rows columns"]:
    """The convolution of an unpadded, ungrouped layer as one matrix product, channels last in memory."""
    (kernel, _), (stride, _) = conv.kernel_size, conv.stride
    windows = images.unfold(2, kernel, stride).unfold(3, kernel, stride).permute(0, 2, 3, 1, 4, 5)
    places, length = windows.shape[:3], conv.weight[0].numel()
    rest = -length % _ALIGNED
    is_mixed = torch.is_autocast_enabled(images.device.type)
    dtype = torch.get_autocast_dtype(images.device.type) if is_mixed else images.dtype
    columns = images.new_zeros(*places, length + rest, dtype=dtype)
    columns[..., :length] = windows.reshape(*places, length)
    maps = F.linear(columns, F.pad(conv.weight.flatten(1), (0, rest)), conv.bias)
    return maps.permute(0, 3, 1, 2)


def covers_map(conv: nn.Conv2d, features: Tensor) -> bool:
    """Whether a depthwise convolution is as wide as its input, so that it has one position."""
    is_depthwise = conv.groups == conv.in_channels == conv.out_channels
    return is_depthwise and conv.kernel_size == features.shape[-2:] and not any(conv.padding)


def reduce_map(
    features: Float[Tensor, "batch channels height width"], conv: nn.Conv2d
) -> Float[Tensor, "batch channels 1 1"]:
    """A depthwise convolution that covers its map: one weighted sum of each channel, in float32."""
    with without_autocast(features):
        sums = (features.to(conv.weight.dtype) * conv.weight.squeeze(1)).sum((2, 3), keepdim=True)
        return sums if conv.bias is None else sums + conv.bias[:, None, None]
