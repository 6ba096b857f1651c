"""Sizes of feature maps through convolutions, what a position sees, and errors for images too small."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from torch import Tensor
from torch.nn import functional as F

from torchcaps.core import ImageSize, Sides, UserError, sides

# "same" gives ceil(size / stride) and pads an odd pixel at the end (TensorFlow), "symmetric" pads half the
# kernel on each side (PyTorch): at stride 2 they see different pixels
Padding = Literal["valid", "same"]
StagePadding = Literal["valid", "same", "symmetric"]


class ConvStage(NamedTuple):
    """One convolution as far as sizes are concerned; its kernel is square."""

    name: str
    kernel: int
    stride: int = 1
    padding: StagePadding = "valid"

    def out_size(self, size: int) -> int:
        """One side of the output map; zero or less when the kernel does not fit."""
        if self.padding == "same":
            return -(-size // self.stride)
        added = 2 * (self.kernel // 2) if self.padding == "symmetric" else 0
        return (size + added - self.kernel) // self.stride + 1


def require_window(kernel_size: ImageSize, stride: int = 1, padding: int = 0) -> None:
    """Raise where a window has no size, does not move, or would cut rows and columns off the map."""
    least = {"kernel_size": (min(sides(kernel_size)), 1), "stride": (stride, 1), "padding": (padding, 0)}
    for name, (given, smallest) in least.items():
        if given < smallest:
            raise UserError(f"{name} must be at least {smallest}, got {given}")


def map_sizes(image_size: ImageSize, stages: Sequence[ConvStage]) -> list[Sides]:
    """Height and width of the map after each stage; an image that is too small is an error."""
    sizes = []
    height, width = sides(image_size)
    for stage in stages:
        height, width = stage.out_size(height), stage.out_size(width)
        if min(height, width) < 1:
            problem = (
                f"leaves no map after layer {stage.name!r} (kernel {stage.kernel}, stride {stage.stride})"
            )
            raise too_small(image_size, problem, smallest_image(stages))
        sizes.append((height, width))
    return sizes


def smallest_image(stages: Sequence[ConvStage]) -> int:
    """Smallest image side that leaves at least one position after all stages."""
    size = 1
    for stage in reversed(stages):
        size = (size - 1) * stage.stride + (stage.kernel if stage.padding == "valid" else 1)
    return size


def too_small(image_size: ImageSize, problem: str, smallest: int) -> UserError:
    """The error for an image with a side below `smallest` pixels, with the setting that would do."""
    height, width = sides(image_size)
    size = f"{height}" if height == width else f"{height}x{width}"
    enough = size_setting(max(height, smallest), max(width, smallest))
    return UserError(
        f"an image of {size} px {problem}; the smallest that works is {smallest} px a side: set {enough}"
    )


def size_setting(height: int, width: int) -> str:
    """The setting of a recipe that gives a model this image size."""
    return f"model.image_size={height}" if height == width else f"model.image_size=[{height},{width}]"


class ReceptiveField(NamedTuple):
    """The pixels that the positions of a map see; the centre of a pixel has its whole number."""

    first: tuple[float, float]  # centre of row 0 and of column 0
    step: float
    size: float

    def centre(self, row: int, column: int) -> tuple[float, float]:
        """Row and column of the pixel below the middle of a position."""
        return self.first[0] + self.step * row, self.first[1] + self.step * column


def receptive_field(image_size: ImageSize, stages: Sequence[ConvStage]) -> ReceptiveField:
    """What a position sees of an image after convolutions.

    Where maps are padded to keep their size, the first centre depends on the size of the image, so that of
    rows may differ from that of columns.
    """
    first, step, size = [0.0, 0.0], 1, 1
    before = sides(image_size)
    for stage, after in zip(stages, map_sizes(image_size, stages), strict=True):
        for axis in (0, 1):
            first[axis] += ((stage.kernel - 1) / 2 - _padding_before(stage, before[axis], after[axis])) * step
        size += (stage.kernel - 1) * step
        step *= stage.stride
        before = after
    return ReceptiveField((first[0], first[1]), float(step), float(size))


def _padding_before(stage: ConvStage, before: int, after: int) -> int:
    """Zeros that a stage adds in front of one side."""
    if stage.padding == "symmetric":
        return stage.kernel // 2
    lacking = max((after - 1) * stage.stride + stage.kernel - before, 0)
    return lacking // 2 if stage.padding == "same" else 0


def pad_same(images: Tensor, kernel: ImageSize, stride: int) -> Tensor:
    """Zero-pad so that a convolution gives ceil(size / stride); an odd pixel goes to the end (TensorFlow)."""
    pads: list[int] = []
    for size, reach in zip(reversed(images.shape[-2:]), reversed(sides(kernel)), strict=True):
        total = max((-(-size // stride) - 1) * stride + reach - size, 0)
        pads += [total // 2, total - total // 2]
    return F.pad(images, pads)
