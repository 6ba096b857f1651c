"""The network of the thesis' parse trees: five fully connected capsule layers, each small enough to draw."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from jaxtyping import Float
from torch import Tensor, nn

from torchcaps.core import ImageSize, LayerTrace, UserError, require_equal_lengths
from torchcaps.layers import ConvStage, FcCaps, flatten_grid, map_sizes
from torchcaps.routing import RoutingSpec

from .api import register_variants
from .network import (
    CapsuleClassifier,
    DecoderName,
    MapReader,
    build_decoder,
    conv_stem,
    depthwise_primary,
    route_in_turn,
    stem_stages,
)

# Length of an evenly pooled pose before its squash, where those below have length one. The usual deviation of
# 0.1 makes it 0.07 with 16 capsules a layer: activations vanish in the stack, and it hardly learns.
_GAIN = 0.7


@dataclass(frozen=True, kw_only=True)
class ParseCapsNetConfig:
    """Sizes of a parse-tree network; the defaults are those for CIFAR-10.

    The thesis gives the capsules (16 primary, three hidden layers of 16, one per class, all 8D) but not what
    feeds them. We take the stem of Efficient-CapsNet, whose 128 channels under a depthwise kernel as wide as
    the map are exactly 16 primary capsules of 8 dimensions, without a place in the image.
    """

    in_channels: int = 3
    image_size: ImageSize = 32
    num_classes: int = 10
    channels: tuple[int, ...] = (32, 64, 64)
    kernel_sizes: tuple[int, ...] = (5, 3, 3, 3)
    strides: tuple[int, ...] = (1, 1, 1, 2)
    capsules: tuple[int, ...] = (16, 16, 16, 16)  # primary, then hidden
    pose: int = 8
    routing: RoutingSpec = "dynamic"
    decoder: DecoderName = "none"

    @property
    def stages(self) -> list[ConvStage]:
        """The convolutions of the stem; the kernel of the primary capsules is what they leave."""
        return stem_stages(self.kernel_sizes, self.strides)


class ParseCapsNet(CapsuleClassifier):
    """A convolutional stem, primary capsules that each see the whole image, and a stack of capsule layers."""

    config: ParseCapsNetConfig

    def __init__(self, config: ParseCapsNetConfig) -> None:
        super().__init__(config)
        if not config.capsules:
            raise UserError("capsules must name at least the number of primary capsules")
        require_equal_lengths(kernel_sizes=config.kernel_sizes, strides=config.strides)
        if len(config.channels) != len(config.strides) - 1:
            raise UserError(
                f"channels must have one value less than strides, got {len(config.channels)} and "
                f"{len(config.strides)}: the last convolution has as many as the primary capsules take"
            )
        whole_map = map_sizes(config.image_size, config.stages)[-1]
        channels = config.capsules[0] * config.pose
        self.stem = conv_stem(config.in_channels, (*config.channels, channels), config.stages)
        self.primary = depthwise_primary(channels, config.pose, whole_map)
        counts = (*config.capsules, config.num_classes)
        self.capsules = nn.ModuleList(
            FcCaps(
                below,
                above,
                config.pose,
                config.pose,
                routing=config.routing,
                init_std=_GAIN * above * (config.pose * below) ** -0.5,
            )
            for below, above in pairwise(counts)
        )
        self.decoder = build_decoder(config.decoder, config.num_classes, config.pose, self.image_shape)

    def encode(
        self, images: Float[Tensor, "batch channels height width"], *, return_coupling: bool = True
    ) -> tuple[LayerTrace, ...]:
        """The hidden layers and the class layer, each the children of the next."""
        children = flatten_grid(self.primary(self.stem(images)))
        return route_in_turn(self.capsules, children, return_coupling=return_coupling)

    def map_reader(self) -> MapReader:
        """The primary capsules."""
        return MapReader(self.stem, self.config.stages, self.primary)


register_variants(
    ParseCapsNet,
    family="parse_capsnet",
    paper="renzulli2023thesis",
    variants={
        "parse_capsnet": ParseCapsNetConfig(),
        "parse_capsnet_tiny_test": ParseCapsNetConfig(
            in_channels=1,
            image_size=20,
            num_classes=4,
            channels=(4, 4, 4),
            capsules=(3, 3, 3),
            pose=4,
            decoder="fc",
        ),
    },
)
