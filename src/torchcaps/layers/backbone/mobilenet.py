"""MobileNetV1 trunks (Howard 2017), of any widths."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import prod

from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from .api import TRUNKS, Trunk, TrunkConvolution, TrunkVariant, require_widths

ORDER = "stem, then one for each pointwise convolution"
STRIDES = (1, 2, 1, 2, 1, 2, 1, 1, 1, 1, 1, 2, 1)


class _Separable(nn.Module):
    """A kernel per channel, then a mixture of channels."""

    def __init__(self, in_channels: int, out_channels: int, stride: int) -> None:
        super().__init__()
        self.depthwise = nn.Conv2d(
            in_channels, in_channels, 3, stride, padding=1, groups=in_channels, bias=False
        )
        self.bn1 = nn.BatchNorm2d(in_channels)
        self.pointwise = nn.Conv2d(in_channels, out_channels, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(out_channels)

    def forward(self, features: Tensor) -> Tensor:
        features = F.relu(self.bn1(self.depthwise(features)))
        return F.relu(self.bn2(self.pointwise(features)))


class MobileNetTrunk(Trunk):
    """A MobileNetV1 without pooling and classifier.

    Args:
        widths: Channels of the stem, then of each pointwise convolution; a depthwise one follows its input.
        strides: Of each depthwise convolution.
        in_channels: Channels of the image.
    """

    def __init__(
        self, widths: Sequence[int], strides: Sequence[int] = STRIDES, *, in_channels: int = 3
    ) -> None:
        super().__init__()
        self.widths = require_widths(widths, 1 + len(strides), ORDER)
        self.strides = tuple(strides)
        self.out_channels = self.widths[-1]
        self.stride = 2 * prod(strides)
        self.conv1 = nn.Conv2d(in_channels, self.widths[0], 3, 2, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(self.widths[0])
        self.blocks = nn.Sequential(
            *(
                _Separable(before, after, stride)
                for before, after, stride in zip(self.widths, self.widths[1:], strides, strict=False)
            )
        )
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, nonlinearity="relu")

    def forward(
        self, images: Float[Tensor, "batch channels height width"]
    ) -> Float[Tensor, "batch features rows columns"]:
        """The feature map after the last pointwise convolution."""
        return self.blocks(F.relu(self.bn1(self.conv1(images))))

    def convolutions(self) -> list[TrunkConvolution]:
        """Every convolution; a depthwise one writes the channels it reads."""
        found, shrinkage = [TrunkConvolution("conv1", "bn1", None, 0, 3, 2)], 2
        for number, stride in enumerate(self.strides):
            name, shrinkage = f"blocks.{number}", shrinkage * stride
            depthwise = (f"{name}.depthwise", f"{name}.bn1", number, number, 3, shrinkage, True)
            pointwise = (f"{name}.pointwise", f"{name}.bn2", number, number + 1, 1, shrinkage)
            found += [TrunkConvolution(*depthwise), TrunkConvolution(*pointwise)]
        return found


_FULL = (32, 64, 128, 128, 256, 256, 512, 512, 512, 512, 512, 512, 1024, 1024)
_VARIANTS = {
    "mobilenetv1": (_FULL, STRIDES),
    # EagleEye's published network (Li 2020)
    "mobilenetv1_flops50": ((21, 48, 85, 82, 167, 167, 440, 364, 356, 311, 348, 432, 889, 619), STRIDES),
    "mobilenet_small": (tuple(width // 4 for width in _FULL), STRIDES),
    "mobilenet_tiny": ((8, 16, 32, 32), STRIDES[:3]),
}

for _name, (_widths, _strides) in _VARIANTS.items():
    TRUNKS.register(_name)(TrunkVariant(partial(MobileNetTrunk, strides=_strides), _widths))
