"""U-Net (Ronneberger, Fischer & Brox 2015), padded to keep the size and without normalisation."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from torchcaps.core import ImageSize, SegmentationOutput, UserError

from ..api import register_variants
from ..network import Segmenter


@dataclass(frozen=True, kw_only=True)
class UNetConfig:
    """Sizes of a U-Net; the defaults are those of the thesis."""

    in_channels: int = 1
    image_size: ImageSize = 128
    num_classes: int = 1
    depth: int = 5
    base_width: int = 64

    @property
    def widths(self) -> list[int]:
        """Channels of each level, from the image down."""
        return [self.base_width * 2**level for level in range(self.depth)]


def _two_convolutions(in_channels: int, out_channels: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(in_channels, out_channels, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(out_channels, out_channels, 3, padding=1),
        nn.ReLU(),
    )


class UNet(Segmenter):
    """Two convolutions a level; each level on the way up also reads the one of its size on the way down."""

    config: UNetConfig

    def __init__(self, config: UNetConfig) -> None:
        if config.depth < 1:
            raise UserError(f"depth must be at least 1, got {config.depth}")
        super().__init__(config, halvings=config.depth - 1)
        widths = config.widths
        self.down = nn.ModuleList(
            _two_convolutions(before, after) for before, after in pairwise([config.in_channels, *widths])
        )
        upwards = list(pairwise(reversed(widths)))
        self.grow = nn.ModuleList(nn.ConvTranspose2d(before, after, 2, 2) for before, after in upwards)
        self.up = nn.ModuleList(_two_convolutions(2 * after, after) for _, after in upwards)
        self.head = nn.Conv2d(widths[0], config.num_classes, 1)

    def forward(
        self,
        images: Float[Tensor, "batch channels height width"],
        masks: Float[Tensor, "batch classes height width"] | None = None,
        *,
        return_routing: bool = False,
    ) -> SegmentationOutput:
        """Logits, and their sigmoids as activations; `masks` and `return_routing` change nothing."""
        del masks, return_routing
        self._check(images)
        features, skips = self.down[0](images), []
        for level in self.down[1:]:
            skips.append(features)
            features = level(F.max_pool2d(features, 2))
        for grow, level in zip(self.grow, self.up, strict=True):
            features = level(torch.cat([skips.pop(), grow(features)], dim=1))
        logits = self.head(features)
        logits = logits if logits.dtype == torch.float64 else logits.float()
        return SegmentationOutput(logits.sigmoid(), logits)


register_variants(
    UNet,
    family="unet",
    paper="ronneberger2015unet",
    task="segmentation",
    variants={
        "unet_3": UNetConfig(depth=3),
        "unet_4": UNetConfig(depth=4),
        "unet_5": UNetConfig(depth=5),
        "unet_tiny_test": UNetConfig(image_size=16, depth=3, base_width=4),
    },
)
