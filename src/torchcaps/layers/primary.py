"""Primary capsules: a convolution whose channels are read as poses."""

from __future__ import annotations

from collections.abc import Callable
from typing import get_args

import torch
from einops import rearrange
from jaxtyping import Float
from torch import Tensor, nn

from torchcaps.core import (
    Capsules,
    ImageSize,
    UserError,
    pose_lengths,
    require_choice,
    sides,
    without_autocast,
)
from torchcaps.core import squash as squash_by_square
from torchcaps.kernels import fused_squash, squash_unsupported_reason
from torchcaps.routing import is_transformed, is_watched

from .geometry import StagePadding, pad_same, require_window
from .product_conv2d import (
    convolve_map,
    convolve_with_stride,
    covers_map,
    is_depthwise,
    project_map,
    reduce_map,
)
from .routed import Backend


class PrimaryCaps(nn.Module):
    """A grid of `types` capsules at each position, their lengths as activations.

    Args:
        in_channels: Channels of the feature map.
        types: Capsule types at each position.
        pose: Dimensions of a pose.
        kernel_size: Side of the kernel, or its height and width.
        stride: Step of the kernel.
        padding: "valid", "same" or "symmetric".
        groups: 1, or `in_channels` for one kernel per channel (Efficient-CapsNet).
        squash: The function that shortens the poses.
        bias: Whether the convolution has one.

    Examples:
        >>> layer = PrimaryCaps(64, types=8, pose=4, kernel_size=9, stride=2)
        >>> children = layer(torch.rand(2, 64, 20, 20))
        >>> children.poses.shape, children.activations.shape
        (torch.Size([2, 6, 6, 8, 4]), torch.Size([2, 6, 6, 8]))
    """

    def __init__(  # noqa: PLR0913  a convolution has this many sizes
        self,
        in_channels: int,
        types: int,
        pose: int,
        *,
        kernel_size: ImageSize,
        stride: int = 1,
        padding: StagePadding = "valid",
        groups: int = 1,
        squash: Callable[[Tensor], Tensor] = squash_by_square,
        bias: bool = True,
    ) -> None:
        super().__init__()
        require_window(kernel_size, stride)
        self.types = types
        self.padding = require_choice("padding", padding, get_args(StagePadding))
        self.squash = squash
        self.backend: Backend = "auto"  # "torch" convolves and squashes without the fused kernels
        height, width = sides(kernel_size)
        around = (height // 2, width // 2) if padding == "symmetric" else 0
        self.conv = nn.Conv2d(
            in_channels, types * pose, kernel_size, stride, padding=around, groups=groups, bias=bias
        )

    def forward(self, features: Float[Tensor, "batch channels height width"]) -> Capsules:
        """Capsules at (batch, rows, columns), `types` of them at each position."""
        if features.ndim != 4:
            raise UserError(
                "PrimaryCaps expects feature maps (batch, channels, height, width), got "
                f"{tuple(features.shape)}"
            )
        if self.padding == "same":
            height, width = self.conv.kernel_size
            features = pad_same(features, (height, width), self.conv.stride[0])
        maps = self._convolve(features)
        grid = rearrange(maps, "b (t d) h w -> b h w t d", t=self.types)
        with without_autocast(grid):
            poses, lengths = self._shorten(grid)
        dtype = self.conv.weight.dtype  # what the next layer of a half-precision network takes
        return Capsules(poses.to(dtype), lengths.to(dtype))

    @property
    def _is_plain(self) -> bool:
        """Whether no fused kernel may be called."""
        return self.backend == "torch" or is_transformed() or torch.compiler.is_compiling()

    def _shorten(self, grid: Tensor) -> tuple[Tensor, Tensor]:
        """Squashed poses and their lengths, in at least float32."""
        if not self._is_plain and squash_unsupported_reason(grid, self.squash) is None:
            return fused_squash(grid, self.squash)
        poses = self.squash(grid.float() if grid.dtype != torch.float64 else grid)
        return poses, pose_lengths(poses)

    def _convolve(self, features: Tensor) -> Tensor:
        if is_watched(self.conv):
            return self.conv(features)
        if not covers_map(self.conv, features):
            return self.conv(features) if self._is_plain else convolve_with_stride(features, self.conv)
        if self.conv.groups == 1:
            return project_map(features, self.conv)
        if is_depthwise(self.conv) and features.is_cuda:
            return reduce_map(features, self.conv)
        if is_depthwise(self.conv) and self._learns_by_products(features):
            return convolve_map(features, self.conv)
        return self.conv(features)

    def _learns_by_products(self, features: Tensor) -> bool:
        """Whether gradients of a convolution that covers its map are taken as products, as on a CPU."""
        is_traced = is_transformed() or torch.compiler.is_compiling()
        is_mixed = features.dtype != self.conv.weight.dtype or torch.is_autocast_enabled("cpu")
        return self.training and features.device.type == "cpu" and not (is_traced or is_mixed)
