"""A plain convolutional network of few parameters, to compare capsules of the same size with."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from jaxtyping import Float
from torch import Tensor, nn

from torchcaps.core import ImageSize, UserError, sides
from torchcaps.layers import too_small

from ..api import register_variants
from ..network import PlainClassifier


@dataclass(frozen=True, kw_only=True)
class StridedConvNetConfig:
    """Sizes of the network; each convolution halves the map."""

    in_channels: int = 1
    image_size: ImageSize = 28
    num_classes: int = 10
    channels: tuple[int, ...] = (32, 64, 128, 256)
    hidden: int = 256


class StridedConvNet(PlainClassifier):
    """Convolutions of stride 2 with batch normalisation, a dense layer and a softmax."""

    config: StridedConvNetConfig

    def __init__(self, config: StridedConvNetConfig) -> None:
        super().__init__(config)
        if not config.channels:
            raise UserError("channels must name those of at least one convolution, got none")
        height, width = sides(config.image_size)
        shrink = 2 ** len(config.channels)
        if min(height, width) < shrink:
            problem = f"is halved {len(config.channels)} times, to less than a pixel"
            raise too_small(config.image_size, problem, shrink)
        self.convolutions = nn.Sequential()
        for before, after in pairwise([config.in_channels, *config.channels]):
            self.convolutions.append(nn.Conv2d(before, after, 3, 2, padding=1, bias=False))
            self.convolutions.append(nn.BatchNorm2d(after))
            self.convolutions.append(nn.ReLU())
        places = -(-height // shrink) * -(-width // shrink)
        self.dense = nn.Sequential(
            nn.Flatten(), nn.Linear(config.channels[-1] * places, config.hidden), nn.ReLU()
        )
        self.classes = nn.Linear(config.hidden, config.num_classes)

    def logits(
        self, images: Float[Tensor, "batch channels height width"]
    ) -> Float[Tensor, "batch num_classes"]:
        """The numbers that the softmax is taken of."""
        return self.classes(self.dense(self.convolutions(images)))


register_variants(
    StridedConvNet,
    family="strided_convnet",
    paper="sabour2017dynamic",
    variants={
        "strided_convnet": StridedConvNetConfig(),
        "strided_convnet_tiny_test": StridedConvNetConfig(
            image_size=20, num_classes=4, channels=(4, 6), hidden=8
        ),
    },
)
register_variants(
    StridedConvNet,
    family="strided_convnet",
    paper="sabour2017dynamic",
    task="overlap",
    variants={"strided_convnet_multimnist": StridedConvNetConfig(image_size=36)},
)
