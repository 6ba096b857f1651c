"""Efficient-CapsNet (Mazzia, Salvetti & Chiaberge 2021): sixteen capsules, routed without iterations."""

from __future__ import annotations

from dataclasses import dataclass, replace

from jaxtyping import Float
from torch import Tensor, nn

from torchcaps.core import ImageSize, LayerTrace
from torchcaps.layers import ConvStage, build_fc_caps, flatten_grid, map_sizes
from torchcaps.routing import RoutingSpec

from .api import register_variants
from .network import (
    CapsuleClassifier,
    CapsuleGrid,
    ConvStep,
    DecoderName,
    KeptSizes,
    NormName,
    Removable,
    build_decoder,
    conv_stem,
    depthwise_primary,
    require_fitting_stem,
    stem_stages,
    stem_steps,
)


@dataclass(frozen=True, kw_only=True)
class EfficientCapsNetConfig:
    """Sizes of an Efficient-CapsNet; the defaults are those for MNIST."""

    in_channels: int = 1
    image_size: ImageSize = 28
    num_classes: int = 10
    channels: tuple[int, ...] = (32, 64, 64, 128)
    kernel_sizes: tuple[int, ...] = (5, 3, 3, 3)
    strides: tuple[int, ...] = (1, 1, 1, 2)
    norm: NormName = "batch"
    primary_kernel: int = 9
    primary_stride: int = 1
    primary_pose: int = 8
    class_pose: int = 16
    routing: RoutingSpec = "self_attention"
    voters: int = 0  # primary capsules that have a vote, as `prune.shrink` leaves them; 0 means all
    decoder: DecoderName = "none"

    @property
    def stages(self) -> list[ConvStage]:
        """All convolutions, the depthwise one of the primary capsules last."""
        stem = stem_stages(self.kernel_sizes, self.strides)
        return [*stem, ConvStage("primary", self.primary_kernel, self.primary_stride)]


class EfficientCapsNet(CapsuleClassifier):
    """Four convolutions, one depthwise kernel as wide as the map, and class capsules by self-attention."""

    config: EfficientCapsNetConfig

    def __init__(self, config: EfficientCapsNetConfig) -> None:
        super().__init__(config)
        require_fitting_stem(config.channels, config.kernel_sizes, config.strides, config.primary_pose)
        height, width = map_sizes(config.image_size, config.stages)[-1]
        self.stem = conv_stem(config.in_channels, config.channels, config.stages[:-1], config.norm)
        self.primary = depthwise_primary(
            config.channels[-1], config.primary_pose, config.primary_kernel, config.primary_stride
        )
        self.classes = build_fc_caps(
            self.primary.types * height * width,
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
        children = flatten_grid(self.primary(self.stem(images)))
        return (LayerTrace(children, self.classes(children, return_coupling=return_coupling)),)

    def capsule_grids(self) -> tuple[CapsuleGrid, ...]:
        """The primary capsules."""
        return (CapsuleGrid(self.config.stages, self.primary.types),)

    def removable(self) -> Removable:
        """Capsules, whole types with their filters, and channels below them."""
        return Removable(
            steps=stem_steps(self.stem),
            reader=ConvStep("primary.conv", self.primary.conv, nn.Identity()),
            is_padded=False,
            parents_name="classes",
            parents=self.classes,
            types=self.primary.types,
            selects=True,
        )

    def resized(self, kept: KeptSizes) -> EfficientCapsNetConfig:
        """The config of the network that is left."""
        return replace(self.config, channels=kept.widths, voters=kept.voters)


register_variants(
    EfficientCapsNet,
    family="efficient_capsnet",
    paper="mazzia2021efficient",
    variants={
        "efficient_capsnet_mnist": EfficientCapsNetConfig(),
        # the primary kernel is as large as the map below it, so there are 16 capsules as on MNIST
        "efficient_capsnet_32": EfficientCapsNetConfig(in_channels=3, image_size=32, primary_kernel=11),
        "efficient_capsnet_smallnorb": EfficientCapsNetConfig(
            in_channels=2,
            image_size=48,
            num_classes=5,
            kernel_sizes=(7, 3, 3, 3),
            strides=(2, 1, 1, 2),
            norm="instance",
            primary_kernel=8,
        ),
        "efficient_capsnet_multimnist": EfficientCapsNetConfig(
            image_size=36, strides=(1, 1, 2, 2), primary_kernel=5, primary_stride=2
        ),
        "efficient_capsnet_tiny_test": EfficientCapsNetConfig(
            image_size=20, num_classes=4, channels=(4, 8, 8, 16), primary_kernel=5, class_pose=6, decoder="fc"
        ),
    },
)
