"""Efficient-CapsNet with dense layers where its capsules are: what it is compared with at equal size."""

from __future__ import annotations

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor, nn

from torchcaps.core import ImageSize, UserError
from torchcaps.layers import ConvStage, map_sizes

from ..api import register_variants
from ..network import NormName, PlainClassifier, conv_stem, require_fitting_stem, stem_stages


@dataclass(frozen=True, kw_only=True)
class ConvTwinConfig:
    """Sizes of the twin; by default it has 58 parameters less than Efficient-CapsNet."""

    in_channels: int = 1
    image_size: ImageSize = 28
    num_classes: int = 10
    channels: tuple[int, ...] = (32, 64, 64, 128)
    kernel_sizes: tuple[int, ...] = (5, 3, 3, 3)
    strides: tuple[int, ...] = (1, 1, 1, 2)
    norm: NormName = "batch"
    last_kernel: int = 9
    hidden: int = 148

    @property
    def stages(self) -> list[ConvStage]:
        """All convolutions, the depthwise one last."""
        stem = stem_stages(self.kernel_sizes, self.strides, "convolutions")
        return [*stem, ConvStage("last_convolution", self.last_kernel)]


class ConvTwin(PlainClassifier):
    """The five convolutions of Efficient-CapsNet, then two dense layers and a softmax."""

    config: ConvTwinConfig

    def __init__(self, config: ConvTwinConfig) -> None:
        super().__init__(config)
        require_fitting_stem(config.channels, config.kernel_sizes, config.strides, 1)
        if config.hidden < 1:
            raise UserError(f"hidden must be at least 1, got {config.hidden}")
        height, width = map_sizes(config.image_size, config.stages)[-1]
        channels = config.channels[-1]
        self.convolutions = conv_stem(config.in_channels, config.channels, config.stages[:-1], config.norm)
        self.last_convolution = nn.Conv2d(channels, channels, config.last_kernel, groups=channels)
        self.hidden = nn.Linear(channels * height * width, config.hidden)
        self.classes = nn.Linear(config.hidden, config.num_classes)

    def logits(
        self, images: Float[Tensor, "batch channels height width"]
    ) -> Float[Tensor, "batch num_classes"]:
        """The numbers that the softmax is taken of."""
        features = self.last_convolution(self.convolutions(images)).relu().flatten(1)
        return self.classes(self.hidden(features).relu())


register_variants(
    ConvTwin,
    family="conv_twin",
    paper="mazzia2021efficient",
    variants={
        "conv_twin_mnist": ConvTwinConfig(),
        "conv_twin_tiny_test": ConvTwinConfig(
            image_size=20, num_classes=4, channels=(4, 8, 8, 16), last_kernel=5, hidden=8
        ),
    },
)
