"""Efficient-CapsNet (Mazzia, Salvetti & Chiaberge 2021): sixteen capsules, routed without iterations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from jaxtyping import Float
from torch import Tensor, nn

from torchcaps.core.errors import UserError
from torchcaps.core.fields import require_equal_lengths
from torchcaps.core.squash import squash_exponential
from torchcaps.core.types import LayerTrace
from torchcaps.layers import ConvStage, PrimaryCaps, StemConv2d, build_fc_caps, flatten_grid, map_sizes
from torchcaps.routing import RoutingSpec

from .api import register_variants
from .classifier import CapsuleClassifier, DecoderName, build_decoder

_IMAGE_CHANNELS = 3  # at most


@dataclass(frozen=True, kw_only=True)
class EfficientCapsNetConfig:
    """Sizes of an Efficient-CapsNet; the defaults are those for MNIST."""

    in_channels: int = 1
    image_size: int = 28
    num_classes: int = 10
    channels: tuple[int, ...] = (32, 64, 64, 128)
    kernel_sizes: tuple[int, ...] = (5, 3, 3, 3)
    strides: tuple[int, ...] = (1, 1, 1, 2)
    norm: Literal["batch", "instance"] = "batch"
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
        convolutions = zip(self.kernel_sizes, self.strides, strict=True)
        stem = [ConvStage(f"stem.{i}", kernel, stride) for i, (kernel, stride) in enumerate(convolutions)]
        return [*stem, ConvStage("primary", self.primary_kernel, self.primary_stride)]


def stem_block(
    in_channels: int, out_channels: int, stage: ConvStage, norm: Literal["batch", "instance"] = "batch"
) -> nn.Sequential:
    """A convolution, its rectifier, and then the normalisation."""
    is_first = in_channels <= _IMAGE_CHANNELS
    convolution = (StemConv2d if is_first else nn.Conv2d)(
        in_channels, out_channels, stage.kernel, stage.stride
    )
    nn.init.kaiming_normal_(convolution.weight, nonlinearity="relu")
    nn.init.zeros_(convolution.bias)  # type: ignore[arg-type]
    if norm == "instance":
        norm_layer = nn.InstanceNorm2d(out_channels, eps=1e-3, affine=True)
        return nn.Sequential(convolution, nn.LeakyReLU(0.3), norm_layer)
    return nn.Sequential(convolution, nn.ReLU(), nn.BatchNorm2d(out_channels, eps=1e-3))


def require_fitting_stem(
    channels: tuple[int, ...], kernel_sizes: tuple[int, ...], strides: tuple[int, ...], pose: int
) -> None:
    """Raise unless there is a value for each convolution, and the last is read as whole poses."""
    require_equal_lengths(channels=channels, kernel_sizes=kernel_sizes, strides=strides)
    if not channels or channels[-1] % pose:
        raise UserError(f"the last of channels must be a multiple of {pose}, the pose, got {list(channels)}")


class EfficientCapsNet(CapsuleClassifier):
    """Four convolutions, one depthwise kernel as wide as the map, and class capsules by self-attention."""

    config: EfficientCapsNetConfig

    def __init__(self, config: EfficientCapsNetConfig) -> None:
        super().__init__(config)
        require_fitting_stem(config.channels, config.kernel_sizes, config.strides, config.primary_pose)
        side = map_sizes(config.image_size, config.stages)[-1]
        widths = [config.in_channels, *config.channels]
        self.stem = nn.Sequential(
            *(
                stem_block(before, after, stage, config.norm)
                for before, after, stage in zip(
                    widths[:-1], widths[1:], config.stages[: len(config.channels)], strict=True
                )
            )
        )
        types = widths[-1] // config.primary_pose
        self.primary = PrimaryCaps(
            widths[-1],
            types,
            config.primary_pose,
            kernel_size=config.primary_kernel,
            stride=config.primary_stride,
            groups=widths[-1],
            squash=squash_exponential,
        )
        self.classes = build_fc_caps(
            types * side**2,
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


register_variants(
    EfficientCapsNet,
    family="efficient_capsnet",
    paper="mazzia2021efficient",
    variants={
        "efficient_capsnet_mnist": EfficientCapsNetConfig(),
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
