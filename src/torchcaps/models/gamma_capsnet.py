"""Gamma-CapsNet (Peer, Stabinger & Rodriguez-Sanchez 2019): two capsule layers routed by scaled distance."""

from __future__ import annotations

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from torchcaps.core.types import LayerTrace
from torchcaps.layers import ConvStage, FcCaps, PrimaryCaps, StemConv2d, flatten_grid, map_sizes
from torchcaps.routing import RoutingSpec

from .api import register_variants
from .classifier import CapsuleClassifier, DecoderName, build_decoder


@dataclass(frozen=True, kw_only=True)
class GammaCapsNetConfig:
    """Sizes of a gamma-CapsNet; the defaults are those for MNIST.

    The authors' decoder is "fc_unmasked", and their routing takes its mean distance over the batch:
    `routing={"name": "scaled_distance", "scope": "batch"}`.
    """

    in_channels: int = 1
    image_size: int = 28
    num_classes: int = 10
    stem_channels: int = 256
    primary_types: int = 32
    hidden_caps: int = 32
    pose: int = 8
    class_pose: int = 16
    kernel_size: int = 9
    routing: RoutingSpec = "scaled_distance"
    decoder: DecoderName = "none"

    @property
    def stages(self) -> list[ConvStage]:
        """The two convolutions."""
        return [ConvStage("stem", self.kernel_size), ConvStage("primary", self.kernel_size, 2)]


class GammaCapsNet(CapsuleClassifier):
    """The convolutions of DR-CapsNet, a hidden capsule layer, and the class capsules."""

    config: GammaCapsNetConfig

    def __init__(self, config: GammaCapsNetConfig) -> None:
        super().__init__(config)
        side = map_sizes(config.image_size, config.stages)[-1]
        self.stem = StemConv2d(config.in_channels, config.stem_channels, config.kernel_size)
        self.primary = PrimaryCaps(
            config.stem_channels,
            config.primary_types,
            config.pose,
            kernel_size=config.kernel_size,
            stride=2,
        )
        self.hidden = FcCaps(
            config.primary_types * side**2,
            config.hidden_caps,
            config.pose,
            config.pose,
            routing=config.routing,
        )
        self.classes = FcCaps(
            config.hidden_caps, config.num_classes, config.pose, config.class_pose, routing=config.routing
        )
        self.decoder = build_decoder(config.decoder, config.num_classes, config.class_pose, self.image_shape)

    def encode(
        self, images: Float[Tensor, "batch channels height width"], *, return_coupling: bool = True
    ) -> tuple[LayerTrace, ...]:
        """The hidden and the class layer."""
        primary = flatten_grid(self.primary(self.stem(images).relu()))
        hidden = self.hidden(primary, return_coupling=return_coupling)
        children = hidden.capsules
        classes = self.classes(children, return_coupling=return_coupling)
        return LayerTrace(primary, hidden), LayerTrace(children, classes)


register_variants(
    GammaCapsNet,
    family="gamma_capsnet",
    paper="peer2019gamma",
    variants={
        "gamma_capsnet_mnist": GammaCapsNetConfig(),
        "gamma_capsnet_cifar10": GammaCapsNetConfig(in_channels=3, image_size=32),
        "gamma_capsnet_tiny_test": GammaCapsNetConfig(
            image_size=20,
            num_classes=4,
            stem_channels=4,
            primary_types=2,
            hidden_caps=3,
            pose=4,
            class_pose=6,
            decoder="fc",
        ),
    },
)
