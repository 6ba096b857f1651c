"""Gamma-CapsNet (Peer, Stabinger & Rodriguez-Sanchez 2019): two capsule layers routed by scaled distance."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

from torchcaps.layers import FcCaps
from torchcaps.routing import RoutingSpec

from .api import register_variants
from .dr_capsnet import PrimaryGridClassifier, PrimaryGridConfig
from .network import DecoderName, KeptSizes, Removable, build_decoder


@dataclass(frozen=True, kw_only=True)
class GammaCapsNetConfig(PrimaryGridConfig):
    """Sizes of a gamma-CapsNet; the defaults are those for MNIST.

    The authors' decoder is "fc_unmasked", and their routing takes its mean distance over the batch:
    `routing={"name": "scaled_distance", "scope": "batch"}`. The thesis also holds the couplings constant in
    the backward pass, `"gradient": "last"`: the variants that end in `_thesis`, which learn far less unless
    their matrices start wider, with an `init_std` of 1 (see `beyond:distance-gradient`).
    """

    hidden_caps: int = 32
    pose: int = 8
    class_pose: int = 16
    init_std: float = 0.1  # of the matrices of both routed layers
    routing: RoutingSpec = "scaled_distance"
    decoder: DecoderName = "none"


class GammaCapsNet(PrimaryGridClassifier):
    """The convolutions of DR-CapsNet, a hidden capsule layer, and the class capsules."""

    config: GammaCapsNetConfig
    routed_layers = ("hidden", "classes")

    def __init__(self, config: GammaCapsNetConfig) -> None:
        super().__init__(config, pose=config.pose)
        build = partial(FcCaps, routing=config.routing, init_std=config.init_std)
        self.hidden = build(self.num_primary, config.hidden_caps, config.pose, config.pose)
        self.classes = build(config.hidden_caps, config.num_classes, config.pose, config.class_pose)
        self.decoder = build_decoder(config.decoder, config.num_classes, config.class_pose, self.image_shape)

    def removable(self) -> Removable:
        """Channels of the convolution; in scaled-distance routing a vote of zero counts, so children stay."""
        return self.removable_below("hidden", self.hidden, selects=False)

    def resized(self, kept: KeptSizes) -> GammaCapsNetConfig:
        """The config of the network that is left."""
        return replace(self.config, stem_channels=kept.widths[0], primary_types=kept.types)


_THESIS_ROUTING = {"name": "scaled_distance", "scope": "batch", "gradient": "last"}
register_variants(
    GammaCapsNet,
    family="gamma_capsnet",
    paper="peer2019gamma",
    variants={
        "gamma_capsnet_mnist": GammaCapsNetConfig(),
        "gamma_capsnet_cifar10": GammaCapsNetConfig(in_channels=3, image_size=32),
        "gamma_capsnet_mnist_thesis": GammaCapsNetConfig(routing=_THESIS_ROUTING),
        "gamma_capsnet_cifar10_thesis": GammaCapsNetConfig(
            in_channels=3, image_size=32, routing=_THESIS_ROUTING
        ),
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
