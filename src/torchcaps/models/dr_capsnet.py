"""DR-CapsNet (Sabour, Frosst & Hinton 2017): convolution, primary capsules, one routed layer."""

from __future__ import annotations

from dataclasses import dataclass, replace

from jaxtyping import Float
from torch import Tensor, nn

from torchcaps.core import ImageSize, LayerTrace
from torchcaps.layers import (
    ConvStage,
    FcCaps,
    Padding,
    PrimaryCaps,
    StemConv2d,
    build_fc_caps,
    flatten_grid,
    map_sizes,
    pad_same,
    rectify,
)
from torchcaps.routing import RoutingSpec

from .api import register_variants
from .network import (
    CapsuleClassifier,
    CapsuleGrid,
    ConvStep,
    DecoderName,
    KeptSizes,
    Removable,
    build_decoder,
    route_in_turn,
)


@dataclass(frozen=True, kw_only=True)
class PrimaryGridConfig:
    """Sizes of a convolution and of the primary capsules on it; the defaults are those for MNIST."""

    in_channels: int = 1
    image_size: ImageSize = 28
    num_classes: int = 10
    stem_channels: int = 256
    primary_types: int = 32
    kernel_size: int = 9

    @property
    def stages(self) -> list[ConvStage]:
        """The two convolutions."""
        return [ConvStage("stem", self.kernel_size), ConvStage("primary", self.kernel_size, 2)]


class PrimaryGridClassifier(CapsuleClassifier):
    """A convolution and primary capsules at stride 2; a family adds fully connected layers above them."""

    config: PrimaryGridConfig
    routed_layers: tuple[str, ...] = ("classes",)  # from below

    def __init__(self, config: PrimaryGridConfig, *, pose: int, padding: Padding = "valid") -> None:
        super().__init__(config)
        height, width = map_sizes(config.image_size, config.stages)[-1]
        self.num_primary = config.primary_types * height * width
        self.stem = StemConv2d(config.in_channels, config.stem_channels, config.kernel_size)
        self.primary = PrimaryCaps(
            config.stem_channels,
            config.primary_types,
            pose,
            kernel_size=config.kernel_size,
            stride=2,
            padding=padding,
        )

    def encode(
        self, images: Float[Tensor, "batch channels height width"], *, return_coupling: bool = True
    ) -> tuple[LayerTrace, ...]:
        """The routed layers; the primary capsules of all positions are in one row."""
        if self.primary.padding == "same":
            images = pad_same(images, self.config.kernel_size, 1)
        children = flatten_grid(self.primary(rectify(self.stem(images))))
        layers = [getattr(self, name) for name in self.routed_layers]
        return route_in_turn(layers, children, return_coupling=return_coupling)

    def capsule_grids(self) -> tuple[CapsuleGrid, ...]:
        """The primary capsules."""
        return (CapsuleGrid(self.config.stages, self.config.primary_types),)

    def removable_below(self, name: str, parents: FcCaps, *, selects: bool) -> Removable:
        """Channels of the convolution, primary capsules, and whole types of them with their filters."""
        return Removable(
            steps=[ConvStep("stem", self.stem, nn.ReLU())],
            reader=ConvStep("primary.conv", self.primary.conv, nn.Identity()),
            is_padded=self.primary.padding == "same",
            parents_name=name,
            parents=parents,
            types=self.primary.types,
            selects=selects,
        )


@dataclass(frozen=True, kw_only=True)
class DRCapsNetConfig(PrimaryGridConfig):
    """Sizes of a DR-CapsNet; the defaults are those for MNIST."""

    primary_pose: int = 8
    class_pose: int = 16
    padding: Padding = "valid"
    routing: RoutingSpec = "dynamic"
    voters: int = 0  # primary capsules that have a vote, as `prune.shrink` leaves them; 0 means all
    decoder: DecoderName = "none"

    @property
    def stages(self) -> list[ConvStage]:
        """The two convolutions."""
        return [stage._replace(padding=self.padding) for stage in super().stages]


class DRCapsNet(PrimaryGridClassifier):
    """A convolution, primary capsules at stride 2, and class capsules that see all of them."""

    config: DRCapsNetConfig

    def __init__(self, config: DRCapsNetConfig) -> None:
        super().__init__(config, pose=config.primary_pose, padding=config.padding)
        self.classes = build_fc_caps(
            self.num_primary,
            config.num_classes,
            config.primary_pose,
            config.class_pose,
            routing=config.routing,
            voters=config.voters,
        )
        self.decoder = build_decoder(config.decoder, config.num_classes, config.class_pose, self.image_shape)

    def removable(self) -> Removable:
        """Capsules, whole types with their filters, and channels of the convolution."""
        return self.removable_below("classes", self.classes, selects=True)

    def resized(self, kept: KeptSizes) -> DRCapsNetConfig:
        """The config of the network that is left."""
        return replace(
            self.config, stem_channels=kept.widths[0], primary_types=kept.types, voters=kept.voters
        )


register_variants(
    DRCapsNet,
    family="dr_capsnet",
    paper="sabour2017dynamic",
    variants={
        "dr_capsnet_mnist": DRCapsNetConfig(),
        "dr_capsnet_40": DRCapsNetConfig(image_size=40),
        "dr_capsnet_smallnorb": DRCapsNetConfig(in_channels=2, image_size=32, num_classes=5),
        "dr_capsnet_cifar10": DRCapsNetConfig(in_channels=3, image_size=24, primary_types=64),
        "dr_capsnet_cifar10_32": DRCapsNetConfig(
            in_channels=3, image_size=32, primary_types=64, kernel_size=3
        ),
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
register_variants(
    DRCapsNet,
    family="dr_capsnet",
    paper="sabour2017dynamic",
    task="overlap",
    variants={"dr_capsnet_multimnist": DRCapsNetConfig(image_size=36)},
)
