"""The convolutional network that the dynamic-routing paper compares with (Sabour 2017, section 5)."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from jaxtyping import Float
from torch import Tensor, nn

from torchcaps.core import ImageSize, UserError, sides
from torchcaps.layers import ConvStage, Padding, map_sizes, too_small

from ..api import register_variants
from ..network import PlainClassifier


@dataclass(frozen=True, kw_only=True)
class ConvBaselineConfig:
    """Sizes of the baseline; the defaults are those for MNIST.

    The paper does not name the padding; "same" gives its 35.4 million parameters, "valid" 13.3 million.
    """

    in_channels: int = 1
    image_size: ImageSize = 28
    num_classes: int = 10
    channels: tuple[int, ...] = (256, 256, 128)
    hidden: tuple[int, ...] = (328, 192)
    kernel_size: int = 5
    padding: Padding = "same"
    dropout: float = 0.5

    @property
    def stages(self) -> list[ConvStage]:
        """The convolutions."""
        return [
            ConvStage(f"convolutions.{i}", self.kernel_size, 1, self.padding)
            for i, _ in enumerate(self.channels)
        ]


class ConvBaseline(PlainClassifier):
    """Convolutions, dense layers and a softmax."""

    config: ConvBaselineConfig

    def __init__(self, config: ConvBaselineConfig) -> None:
        super().__init__(config)
        if not config.channels:
            raise UserError("channels must name those of at least one convolution, got none")
        if not 0 <= config.dropout < 1:
            raise UserError(f"dropout must be at least 0 and below 1, got {config.dropout}")
        if min(sides(config.image_size)) < config.kernel_size:
            problem = "is smaller than the kernel of layer 'convolutions.0'"
            raise too_small(config.image_size, problem, config.kernel_size)
        height, width = map_sizes(config.image_size, config.stages)[-1]
        widths = [config.in_channels, *config.channels]
        self.convolutions = nn.Sequential()
        for before, after in pairwise(widths):
            self.convolutions.append(nn.Conv2d(before, after, config.kernel_size, padding=config.padding))
            self.convolutions.append(nn.ReLU())
        sizes = [config.channels[-1] * height * width, *config.hidden]
        self.dense = nn.Sequential(nn.Flatten())
        for inputs, outputs in pairwise(sizes):
            self.dense.append(nn.Linear(inputs, outputs))
            self.dense.append(nn.ReLU())
        self.dense.append(nn.Dropout(config.dropout))
        self.classes = nn.Linear(sizes[-1], config.num_classes)

    def logits(
        self, images: Float[Tensor, "batch channels height width"]
    ) -> Float[Tensor, "batch num_classes"]:
        """The numbers that the softmax is taken of."""
        return self.classes(self.dense(self.convolutions(images)))


register_variants(
    ConvBaseline,
    family="conv_baseline",
    paper="sabour2017dynamic",
    variants={
        "conv_baseline": ConvBaselineConfig(),
        "conv_baseline_tiny_test": ConvBaselineConfig(
            image_size=20, num_classes=4, channels=(4, 4, 4), hidden=(8, 6)
        ),
    },
)
