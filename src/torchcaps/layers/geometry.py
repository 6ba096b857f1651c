"""Sizes of feature maps through convolutions, and errors for images that are too small."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from torch import Tensor
from torch.nn import functional as F

from torchcaps.core.errors import UserError

Padding = Literal["valid", "same"]


class ConvStage(NamedTuple):
    """One convolution as far as sizes are concerned."""

    name: str
    kernel: int
    stride: int = 1
    padding: Padding = "valid"

    def out_size(self, size: int) -> int:
        """Side of the output map; zero or less when the kernel does not fit."""
        if self.padding == "same":
            return -(-size // self.stride)
        return (size - self.kernel) // self.stride + 1


def map_sizes(size: int, stages: Sequence[ConvStage]) -> list[int]:
    """Side of the map after each stage; too small an image is an error that names the smallest."""
    sizes = []
    current = size
    for stage in stages:
        current = stage.out_size(current)
        if current < 1:
            raise UserError(
                f"an image of {size} px leaves no map after layer {stage.name!r} "
                f"(kernel {stage.kernel}, stride {stage.stride}); "
                f"the smallest that works is {smallest_image(stages)} px"
            )
        sizes.append(current)
    return sizes


def smallest_image(stages: Sequence[ConvStage]) -> int:
    """Smallest image side that leaves at least one position after all stages."""
    size = 1
    for stage in reversed(stages):
        size = (size - 1) * stage.stride + (1 if stage.padding == "same" else stage.kernel)
    return size


def pad_same(images: Tensor, kernel: int, stride: int) -> Tensor:
    """Zero-pad so that a convolution gives ceil(size / stride); an odd pixel goes to the end (TensorFlow)."""
    pads: list[int] = []
    for size in reversed(images.shape[-2:]):
        total = max((-(-size // stride) - 1) * stride + kernel - size, 0)
        pads += [total // 2, total - total // 2]
    return F.pad(images, pads)
