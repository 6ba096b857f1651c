"""ResNet trunks of bottleneck blocks (He 2016), of any widths, with torchvision's names for their weights."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from .api import TRUNKS, Trunk, TrunkConvolution, TrunkVariant, require_widths

ORDER = "stem, then per stage the two inner widths of each block and the width of the stage"


class _Bottleneck(nn.Module):
    def __init__(self, in_channels: int, inner: Sequence[int], out_channels: int, stride: int) -> None:
        super().__init__()
        narrow, wide = inner
        self.conv1 = nn.Conv2d(in_channels, narrow, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(narrow)
        self.conv2 = nn.Conv2d(narrow, wide, 3, stride, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(wide)
        self.conv3 = nn.Conv2d(wide, out_channels, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(out_channels)
        self.downsample: nn.Module | None = None

    def forward(self, features: Tensor) -> Tensor:
        inner = F.relu(self.bn1(self.conv1(features)))
        inner = F.relu(self.bn2(self.conv2(inner)))
        shortcut = features if self.downsample is None else self.downsample(features)
        return F.relu(self.bn3(self.conv3(inner)) + shortcut)


def _stage(in_channels: int, widths: Sequence[int], stride: int) -> nn.Sequential:
    *inner, out_channels = widths
    stage = nn.Sequential()
    for block in range(len(inner) // 2):
        pair = inner[2 * block : 2 * block + 2]
        if block:
            stage.append(_Bottleneck(out_channels, pair, out_channels, 1))
            continue
        first = _Bottleneck(in_channels, pair, out_channels, stride)
        first.downsample = nn.Sequential(
            nn.Conv2d(in_channels, out_channels, 1, stride, bias=False), nn.BatchNorm2d(out_channels)
        )
        stage.append(first)
    return stage


class ResNetTrunk(Trunk):
    """A ResNet without pooling and classifier; a map a thirty-second of the image for four stages.

    Args:
        widths: Channels of each prunable group, in the order of EagleEye: the stem, then per stage the two
            inner widths of each block and the one width that its outputs share through the shortcuts.
        blocks: Blocks of each stage.
        in_channels: Channels of the image.
    """

    def __init__(
        self, widths: Sequence[int], blocks: Sequence[int] = (3, 4, 6, 3), *, in_channels: int = 3
    ) -> None:
        super().__init__()
        self.blocks = tuple(blocks)
        self.widths = require_widths(widths, 1 + sum(2 * count + 1 for count in blocks), ORDER)
        self.out_channels = self.widths[-1]
        self.stride = 2 ** (len(blocks) + 1)
        self.conv1 = nn.Conv2d(in_channels, self.widths[0], 7, 2, padding=3, bias=False)
        self.bn1 = nn.BatchNorm2d(self.widths[0])
        before, start = self.widths[0], 1
        for number, count in enumerate(blocks):
            group = self.widths[start : start + 2 * count + 1]
            self.add_module(f"layer{number + 1}", _stage(before, group, stride=1 if number == 0 else 2))
            before, start = group[-1], start + len(group)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def forward(
        self, images: Float[Tensor, "batch channels height width"]
    ) -> Float[Tensor, "batch features rows columns"]:
        """The feature map after the last stage."""
        features = F.max_pool2d(F.relu(self.bn1(self.conv1(images))), 3, 2, padding=1)
        for number in range(len(self.blocks)):
            features = self.get_submodule(f"layer{number + 1}")(features)
        return features

    def convolutions(self) -> list[TrunkConvolution]:
        """Every convolution; those that write the output of a stage share its group."""
        found, source, first, before = [TrunkConvolution("conv1", "bn1", None, 0, 7, 2)], 0, 1, 4
        for number, count in enumerate(self.blocks):
            shrinkage, shared = 4 * 2**number, first + 2 * count
            for block in range(count):
                name, inner = f"layer{number + 1}.{block}", first + 2 * block
                found += _convolutions_of_block(name, (source, inner, inner + 1, shared), before, shrinkage)
                source, before = shared, shrinkage
            first = shared + 1
        return found


def _convolutions_of_block(
    name: str, groups: tuple[int, int, int, int], before: int, shrinkage: int
) -> list[TrunkConvolution]:
    source, narrow, wide, shared = groups
    found = [
        TrunkConvolution(f"{name}.conv1", f"{name}.bn1", source, narrow, 1, before),
        TrunkConvolution(f"{name}.conv2", f"{name}.bn2", narrow, wide, 3, shrinkage),
        TrunkConvolution(f"{name}.conv3", f"{name}.bn3", wide, shared, 1, shrinkage),
    ]
    if name.endswith(".0"):
        shortcut = f"{name}.downsample"
        found.append(TrunkConvolution(f"{shortcut}.0", f"{shortcut}.1", source, shared, 1, shrinkage))
    return found


def even_widths(stem: int, inner: int, blocks: Sequence[int]) -> tuple[int, ...]:
    """Unpruned widths: `inner` doubles with each stage; a stage's output is four times its inner width."""
    widths = [stem]
    for number, count in enumerate(blocks):
        widths += [inner * 2**number] * (2 * count) + [4 * inner * 2**number]
    return tuple(widths)


_FIFTY = (3, 4, 6, 3)
# fmt: off
_WIDTHS = {
    "resnet50": (even_widths(64, 64, _FIFTY), _FIFTY),
    # EagleEye's published networks (Li 2020), by the share of multiplications they keep
    "resnet50_flops75": ((
        62,
        57, 56, 46, 46, 50, 60, 210,
        124, 124, 98, 105, 115, 117, 94, 91, 471,
        237, 201, 241, 217, 223, 225, 205, 255, 227, 215, 212, 185, 914,
        476, 412, 410, 387, 408, 491, 1970,
    ), _FIFTY),
    "resnet50_flops50": ((
        58,
        46, 35, 35, 39, 34, 36, 200,
        111, 78, 123, 89, 89, 71, 79, 79, 361,
        225, 197, 217, 160, 208, 179, 173, 161, 246, 180, 153, 150, 568,
        407, 309, 382, 299, 356, 440, 1947,
    ), _FIFTY),
    "resnet50_flops25": ((
        52,
        51, 35, 22, 19, 13, 46, 92,
        111, 86, 33, 55, 37, 79, 31, 58, 272,
        229, 183, 114, 119, 197, 57, 138, 130, 56, 96, 199, 78, 324,
        158, 415, 140, 246, 425, 362, 944,
    ), _FIFTY),
    "resnet_small": (even_widths(32, 16, (1, 1, 1, 1)), (1, 1, 1, 1)),
    "resnet_tiny": (even_widths(8, 4, (1, 1)), (1, 1)),
}
# fmt: on

for _name, (_widths, _blocks) in _WIDTHS.items():
    TRUNKS.register(_name)(TrunkVariant(partial(ResNetTrunk, blocks=_blocks), _widths))
