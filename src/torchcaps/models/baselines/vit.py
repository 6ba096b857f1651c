"""A small vision transformer, from PyTorch's own encoder, to compare capsules with (Dosovitskiy 2021)."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from torchcaps.core import ImageSize, UserError, sides
from torchcaps.layers import too_small

from ..api import register_variants
from ..network import PlainClassifier


@dataclass(frozen=True, kw_only=True)
class ViTConfig:
    """Sizes of the transformer.

    Attributes:
        patch: Side of the square patches that become tokens.
        stem: What makes a token of a patch: "linear", one matrix, or "conv", convolutions of stride 2 (Xiao
            2021), which see over the borders of patches and learn in fewer steps; `patch` is a power of two.
        width: Of a token.
        depth: Encoder layers.
        heads: Of each attention.
        hidden: Width inside the two dense layers of an encoder layer.
        dropout: Within the encoder.
    """

    in_channels: int = 1
    image_size: ImageSize = 28
    num_classes: int = 10
    patch: int = 4
    stem: Literal["linear", "conv"] = "linear"
    width: int = 128
    depth: int = 6
    heads: int = 4
    hidden: int = 256
    dropout: float = 0.0


def _build_stem(config: ViTConfig) -> nn.Module:
    """From an image to a map of tokens."""
    if config.stem == "linear":
        return nn.Conv2d(config.in_channels, config.width, config.patch, config.patch)
    stages = config.patch.bit_length() - 1
    if config.patch < 2 or config.patch != 1 << stages:
        raise UserError(f"stem conv halves the image; patch must be a power of two, got {config.patch}")
    widths = [config.in_channels, *[config.width // 4] * (stages - 1), config.width]
    layers: list[nn.Module] = []
    for before, after in pairwise(widths):
        layers += [nn.Conv2d(before, after, 3, stride=2, padding=1), nn.GELU()]
    return nn.Sequential(*layers[:-1])


class ViT(PlainClassifier):
    """Patches, learned positions, encoder layers, and a class token that is read in the end."""

    config: ViTConfig

    def __init__(self, config: ViTConfig) -> None:
        super().__init__(config)
        height, width = sides(config.image_size)
        if min(height, width) < config.patch:
            raise too_small(config.image_size, "is smaller than a patch", config.patch)
        if config.width % config.heads:
            raise UserError(f"width must be a multiple of heads, got {config.width} and {config.heads}")
        if not 0 <= config.dropout < 1:
            raise UserError(f"dropout must be at least 0 and below 1, got {config.dropout}")
        self.padding = -height % config.patch, -width % config.patch  # zeros below and to the right
        tokens = -(-height // config.patch) * -(-width // config.patch)
        self.patches = _build_stem(config)
        self.class_token = nn.Parameter(torch.zeros(config.width))
        self.positions = nn.Parameter(torch.randn(1 + tokens, config.width).mul_(0.02))
        layer = nn.TransformerEncoderLayer(
            config.width,
            config.heads,
            config.hidden,
            config.dropout,
            activation="gelu",
            batch_first=True,
            norm_first=True,
        )
        self.encoder = nn.TransformerEncoder(
            layer, config.depth, norm=nn.LayerNorm(config.width), enable_nested_tensor=False
        )
        self.classes = nn.Linear(config.width, config.num_classes)

    def logits(
        self, images: Float[Tensor, "batch channels height width"]
    ) -> Float[Tensor, "batch num_classes"]:
        """The numbers that the softmax is taken of."""
        below, right = self.padding
        tokens = self.patches(F.pad(images, (0, right, 0, below))).flatten(2).transpose(1, 2)
        first = self.class_token.expand(tokens.shape[0], 1, -1)
        tokens = torch.cat([first, tokens], dim=1) + self.positions
        return self.classes(self.encoder(tokens)[:, 0])


register_variants(
    ViT,
    family="vit",
    paper="dosovitskiy2021image",
    variants={
        "vit_small": ViTConfig(),
        "vit_tiny_test": ViTConfig(
            image_size=20, num_classes=4, patch=5, width=8, depth=2, heads=2, hidden=12
        ),
    },
)
register_variants(
    ViT,
    family="vit",
    paper="dosovitskiy2021image",
    task="overlap",
    variants={"vit_multimnist": ViTConfig(image_size=36)},
)
