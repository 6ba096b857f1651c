"""The convolutions of Efficient-CapsNet (Mazzia 2021), which other families stand on too."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from torchcaps.core import ImageSize, UserError, require_equal_lengths, squash_exponential
from torchcaps.layers import BatchNorm2d, ConvStage, PrimaryCaps, StemConv2d
from torchcaps.routing import is_watched

from .anatomy import ConvStep

NormName = Literal["batch", "instance"]

_IMAGE_CHANNELS = 3  # at most


def stem_stages(kernel_sizes: Sequence[int], strides: Sequence[int], name: str = "stem") -> list[ConvStage]:
    """The sizes of the convolutions in the module `name`."""
    convolutions = zip(kernel_sizes, strides, strict=True)
    return [ConvStage(f"{name}.{i}", kernel, stride) for i, (kernel, stride) in enumerate(convolutions)]


def conv_stem(
    in_channels: int, channels: Sequence[int], stages: Sequence[ConvStage], norm: NormName = "batch"
) -> nn.Sequential:
    """One block for each of `channels`, with the kernel and stride of the stage at the same place."""
    widths = pairwise([in_channels, *channels])
    return nn.Sequential(*(_block(*pair, stage, norm) for pair, stage in zip(widths, stages, strict=True)))


def _block(in_channels: int, out_channels: int, stage: ConvStage, norm: NormName) -> nn.Sequential:
    """A convolution, its rectifier, and then the normalisation."""
    is_first = in_channels <= _IMAGE_CHANNELS  # not rectified in place: see `layers.rectify`
    convolution = (StemConv2d if is_first else nn.Conv2d)(
        in_channels, out_channels, stage.kernel, stage.stride
    )
    nn.init.kaiming_normal_(convolution.weight, nonlinearity="relu")
    nn.init.zeros_(convolution.bias)  # type: ignore[arg-type]
    if norm == "instance":
        norm_layer = nn.InstanceNorm2d(out_channels, eps=1e-3, affine=True)
        return nn.Sequential(convolution, nn.LeakyReLU(0.3, inplace=not is_first), norm_layer)
    return _NormalisedConv(convolution, BatchNorm2d(out_channels, eps=1e-3), in_place=not is_first)


class _NormalisedConv(nn.Sequential):
    """A convolution, its rectifier and its batch norm; bias, rectifier and norm are one where they can be.

    The gradient of the bias is then a sum that the norm's backward pass forms on its way.
    """

    def __init__(self, convolution: nn.Conv2d, norm: BatchNorm2d, *, in_place: bool) -> None:
        super().__init__(convolution, nn.ReLU(inplace=in_place), norm)

    def forward(self, input: Float[Tensor, "batch channels height width"]) -> Tensor:
        """What the three give one after the other."""
        parts: Any = tuple(self)
        convolution, rectifier, norm = parts
        is_ours = isinstance(norm, BatchNorm2d) and norm.learns_from(input)
        is_mixed, is_seen = torch.is_autocast_enabled("cpu"), any(map(is_watched, self))
        if not is_ours or is_mixed or is_seen or convolution.bias is None:
            return super().forward(input)  # type: ignore[no-untyped-call]
        return _in_one(convolution, rectifier, norm, input)


def _in_one(convolution: nn.Conv2d, rectifier: nn.Module, norm: BatchNorm2d, input: Tensor) -> Tensor:
    maps, bias = convolution._conv_forward(input, convolution.weight, None), convolution.bias
    assert bias is not None
    return norm.of_rectified(maps, bias) if norm.takes(maps) else norm(rectifier(maps + bias[:, None, None]))


def stem_steps(stem: nn.Sequential) -> list[ConvStep]:
    """The blocks of a module `stem`, for pruning."""
    steps = []
    for number, block in enumerate(stem):
        convolution, *tail = block.children()
        assert isinstance(convolution, nn.Conv2d)
        steps.append(ConvStep(f"stem.{number}.0", convolution, nn.Sequential(*tail), norm=f"stem.{number}.2"))
    return steps


def depthwise_primary(channels: int, pose: int, kernel_size: ImageSize, stride: int = 1) -> PrimaryCaps:
    """Primary capsules by one kernel for each channel, `pose` channels making one capsule."""
    return PrimaryCaps(
        channels,
        channels // pose,
        pose,
        kernel_size=kernel_size,
        stride=stride,
        groups=channels,
        squash=squash_exponential,
    )


def require_fitting_stem(
    channels: tuple[int, ...], kernel_sizes: tuple[int, ...], strides: tuple[int, ...], pose: int
) -> None:
    """Raise unless there is a value for each convolution, and the last is read as whole poses."""
    require_equal_lengths(channels=channels, kernel_sizes=kernel_sizes, strides=strides)
    if not channels or channels[-1] % pose:
        raise UserError(f"the last of channels must be a multiple of {pose}, the pose, got {list(channels)}")
