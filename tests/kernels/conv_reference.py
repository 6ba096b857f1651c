"""Convolutions of several sizes, and `F.conv2d`, which the kernels answer to."""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from torchcaps.kernels import fused_strided_conv

from accuracy import assert_as_accurate_as


@dataclass(frozen=True)
class ConvCase:
    """Sizes of a convolution without padding."""

    batch: int = 64
    channels: int = 16
    out: int = 16
    height: int = 7
    width: int = 7
    side: int = 3
    stride: int = 2
    bias: bool = True
    dtype: torch.dtype = torch.float16  # Triton's interpreter has no products of bfloat16

    def inputs(self, dtype: torch.dtype, device: str = "cpu") -> list[Tensor]:
        """Maps, kernels and, where there is one, the bias: the same numbers in every precision."""
        source = torch.Generator().manual_seed(0)
        shapes = [
            (self.batch, self.channels, self.height, self.width),
            (self.out, self.channels, self.side, self.side),
        ]
        drawn = [torch.randn(shape, generator=source).to(self.dtype) for shape in shapes]
        drawn += [torch.randn(self.out, generator=source).to(self.dtype)] * self.bias
        return [each.to(device, dtype).requires_grad_() for each in drawn]


CASES = {
    "a primary layer": ConvCase(),
    "more channels than a tile": ConvCase(channels=144, out=160, height=5, width=5),
    "more samples than a tile, not square": ConvCase(batch=130, height=6, width=9, side=4),
    "no bias, stride three": ConvCase(bias=False, stride=3, height=11),
    "stride one": ConvCase(stride=1, height=5, width=4),
    "places that no window sees": ConvCase(side=2, stride=3, height=8),
    "a kernel as large as the map": ConvCase(height=3, width=3),
}


def results(convolve, case: ConvCase, dtype: torch.dtype, device: str) -> list[Tensor]:
    """The maps, and the gradients of what they come from."""
    inputs = case.inputs(dtype, device)
    maps = convolve(*inputs, *[None] * (not case.bias), case.stride)
    slope = torch.randn(maps.shape, generator=torch.Generator().manual_seed(1)).to(case.dtype)
    return [maps, *torch.autograd.grad(maps, inputs, slope.to(device, dtype))]


def assert_as_accurate_as_a_convolution(case: ConvCase, device: str = "cpu") -> None:
    """Errors against float64 are at most twice those of `F.conv2d` in the same precision."""
    exact = results(F.conv2d, case, torch.float64, device)
    plain = results(F.conv2d, case, case.dtype, device)
    fused = results(fused_strided_conv, case, case.dtype, device)
    for fused_one, plain_one, exact_one in zip(fused, plain, exact, strict=True):
        assert fused_one.dtype == case.dtype
        assert_as_accurate_as(fused_one, plain_one, exact_one)
