"""DR-CapsNet (Sabour, Frosst & Hinton 2017): convolution, primary capsules, one routed layer."""

from __future__ import annotations

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from torchcaps.core.types import LayerTrace
from torchcaps.layers import (
    ConvStage,
    PrimaryCaps,
    StemConv2d,
    build_fc_caps,
    flatten_grid,
    map_sizes,
    pad_same,
)
from torchcaps.layers.geometry import Padding
from torchcaps.routing import RoutingSpec

from .api import register_variants
from .classifier import CapsuleClassifier, DecoderName, build_decoder


@dataclass(frozen=True, kw_only=True)
class DRCapsNetConfig:
    """Sizes of a DR-CapsNet; the defaults are those for MNIST."""

    in_channels: int = 1
    image_size: int = 28
    num_classes: int = 10
    stem_channels: int = 256
    primary_types: int = 32
    primary_pose: int = 8
    class_pose: int = 16
    kernel_size: int = 9
    padding: Padding = "valid"
    routing: RoutingSpec = "dynamic"
    voters: int = 0  # primary capsules that have a vote, as `prune.shrink` leaves them; 0 means all
    decoder: DecoderName = "none"

    @property
    def stages(self) -> list[ConvStage]:
        """The two convolutions."""
        return [
            ConvStage("stem", self.kernel_size, 1, self.padding),
            ConvStage("primary", self.kernel_size, 2, self.padding),
        ]


class DRCapsNet(CapsuleClassifier):
    """A convolution, primary capsules at stride 2, and class capsules that see all of them."""

    config: DRCapsNetConfig

    def __init__(self, config: DRCapsNetConfig) -> None:
        super().__init__(config)
        side = map_sizes(config.image_size, config.stages)[-1]
        self.stem = StemConv2d(config.in_channels, config.stem_channels, config.kernel_size)
        self.primary = PrimaryCaps(
            config.stem_channels,
            config.primary_types,
            config.primary_pose,
            kernel_size=config.kernel_size,
            stride=2,
            padding=config.padding,
        )
        self.classes = build_fc_caps(
            config.primary_types * side**2,
            config.num_classes,
            config.primary_pose,
            config.class_pose,
            routing=config.routing,
            voters=config.voters,
        )
        self.decoder = build_decoder(config.decoder, config.num_classes, config.class_pose, self.image_shape)

    def encode(
        self, images: Float[Tensor, "batch channels height width"], *, return_coupling: bool = True
    ) -> tuple[LayerTrace, ...]:
        """The class layer, the only routed one."""
        if self.config.padding == "same":
            images = pad_same(images, self.config.kernel_size, 1)
        children = flatten_grid(self.primary(self.stem(images).relu()))
        return (LayerTrace(children, self.classes(children, return_coupling=return_coupling)),)


register_variants(
    DRCapsNet,
    family="dr_capsnet",
    paper="sabour2017dynamic",
    variants={
        "dr_capsnet_mnist": DRCapsNetConfig(),
        "dr_capsnet_40": DRCapsNetConfig(image_size=40),
        "dr_capsnet_smallnorb": DRCapsNetConfig(in_channels=2, image_size=32, num_classes=5),
        "dr_capsnet_cifar10": DRCapsNetConfig(in_channels=3, image_size=24, primary_types=64),
        "dr_capsnet_cifar10_original": DRCapsNetConfig(
            in_channels=3,
            image_size=24,
            primary_types=64,
            padding="same",
            routing={"name": "dynamic", "leaky": True},
        ),
        "dr_capsnet_minimal": DRCapsNetConfig(primary_types=1, primary_pose=2, class_pose=4),
        "dr_capsnet_small": DRCapsNetConfig(stem_channels=64, primary_types=8, decoder="fc"),
        "dr_capsnet_tiny_test": DRCapsNetConfig(
            image_size=20,
            num_classes=4,
            stem_channels=4,
            primary_types=2,
            primary_pose=4,
            class_pose=6,
            decoder="fc",
        ),
    },
)
