"""Eff-ConvCapsNet (thesis ch. 6): primary, convolutional and class capsules for images of 128 px."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from jaxtyping import Float
from torch import Tensor

from torchcaps.core import ImageSize, LayerTrace, require_choice
from torchcaps.layers import ConvCaps2d, ConvStage, FcCaps, flatten_grid, map_sizes
from torchcaps.routing import RoutingSpec

from .api import register_variants
from .network import (
    CapsuleClassifier,
    CapsuleGrid,
    DecoderName,
    build_decoder,
    conv_stem,
    depthwise_primary,
    require_fitting_stem,
    stem_stages,
)


@dataclass(frozen=True, kw_only=True)
class EffConvCapsNetConfig:
    """Sizes of an Eff-ConvCapsNet; the defaults are those for Imagenette at 128 px.

    The thesis names the layers; that rectifier, normalisation and squash are those of Efficient-CapsNet, and
    that its "shared transformation matrices" are one set for all children (`share="all"`), is our reading.
    """

    in_channels: int = 3
    image_size: ImageSize = 128
    num_classes: int = 10
    channels: tuple[int, ...] = (32, 64, 64, 256)
    kernel_sizes: tuple[int, ...] = (5, 3, 3, 3)
    strides: tuple[int, ...] = (2, 1, 1, 2)
    primary_kernel: int = 3
    pose: int = 16
    hidden_types: int = 16
    hidden_kernel: int = 3
    hidden_stride: int = 2
    share: Literal["all", "positions", "none"] = "all"
    routing: RoutingSpec = "dynamic"
    decoder: DecoderName = "none"

    @property
    def stages(self) -> list[ConvStage]:
        """All convolutions, up to that of the hidden capsules."""
        stem = stem_stages(self.kernel_sizes, self.strides)
        hidden = ConvStage("hidden", self.hidden_kernel, self.hidden_stride)
        return [*stem, ConvStage("primary", self.primary_kernel), hidden]


def _count_matrices(share: str, types: int, capsules: int) -> int:
    counts = {"all": 1, "positions": types, "none": capsules}
    return counts[require_choice("share", share, counts)]


class EffConvCapsNet(CapsuleClassifier):
    """Four convolutions, a depthwise one read as capsules, a convolutional capsule layer, class capsules."""

    config: EffConvCapsNetConfig

    def __init__(self, config: EffConvCapsNetConfig) -> None:
        super().__init__(config)
        require_fitting_stem(config.channels, config.kernel_sizes, config.strides, config.pose)
        height, width = map_sizes(config.image_size, config.stages)[-1]
        self.stem = conv_stem(config.in_channels, config.channels, config.stages[:-2])
        self.primary = depthwise_primary(config.channels[-1], config.pose, config.primary_kernel)
        self.hidden = ConvCaps2d(
            self.primary.types,
            config.hidden_types,
            config.pose,
            config.pose,
            kernel_size=config.hidden_kernel,
            stride=config.hidden_stride,
            routing=config.routing,
        )
        children = config.hidden_types * height * width
        self.classes = FcCaps(
            children,
            config.num_classes,
            config.pose,
            config.pose,
            routing=config.routing,
            matrices=_count_matrices(config.share, config.hidden_types, children),
        )
        self.decoder = build_decoder(config.decoder, config.num_classes, config.pose, self.image_shape)

    def encode(
        self, images: Float[Tensor, "batch channels height width"], *, return_coupling: bool = True
    ) -> tuple[LayerTrace, ...]:
        """The convolutional and the class layer."""
        primary = self.primary(self.stem(images))
        hidden = self.hidden(primary, return_coupling=return_coupling)
        children = flatten_grid(hidden.capsules)
        classes = self.classes(children, return_coupling=return_coupling)
        return LayerTrace(primary, hidden), LayerTrace(children, classes)

    def capsule_grids(self) -> tuple[CapsuleGrid, ...]:
        """The convolutional capsules, which the class capsules see."""
        return (CapsuleGrid(self.config.stages, self.config.hidden_types),)


register_variants(
    EffConvCapsNet,
    family="effconv_capsnet",
    paper="renzulli2023thesis",
    variants={
        "effconv_capsnet_128": EffConvCapsNetConfig(),
        # maps as large as at 128 px, and capsules that see as much of the image
        "effconv_capsnet_64": EffConvCapsNetConfig(image_size=64, strides=(1, 1, 1, 2)),
        "effconv_capsnet_tiny_test": EffConvCapsNetConfig(
            in_channels=1,
            image_size=24,
            num_classes=4,
            channels=(4, 4, 4, 8),
            strides=(1, 1, 1, 2),
            pose=4,
            hidden_types=3,
            decoder="fc",
        ),
    },
)
