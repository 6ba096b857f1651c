"""Networks for class and rotation (thesis, chapter on rotations): a perceptron and a convolutional one."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from einops import rearrange
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from torchcaps.core import ImageSize, PoseOutput, UserError, rotations_of_6d, squash
from torchcaps.layers import ConvStage, map_sizes

from .api import register_variants
from .network import ModelConfig, Network

QUATERNION = 4  # w, x, y, z
RotationName = Literal["quaternion", "6d"]
_NUMBERS = {"quaternion": QUATERNION, "6d": 6}


class PoseNetwork(Network):
    """A network for images of one size that gives an activation and a rotation for each class."""

    decoder = None

    def __init__(self, config: ModelConfig) -> None:
        if config.num_classes < 2:
            raise UserError(f"num_classes must be at least 2, got {config.num_classes}")
        super().__init__(config)


class PoseRegressor(PoseNetwork):
    """Some numbers for each class: their squashed length is its activation, their direction its rotation.

    Four numbers are a quaternion; six are two columns of a rotation matrix (Zhou 2019).
    """

    rotation: RotationName

    @abstractmethod
    def numbers(self, images: Float[Tensor, "batch channels height width"]) -> Float[Tensor, "batch numbers"]:
        """The numbers of each class, one class after the other, of any length."""

    def forward(
        self,
        images: Float[Tensor, "batch channels height width"],
        labels: Int[Tensor, " batch"] | None = None,
        *,
        return_routing: bool = False,
    ) -> PoseOutput:
        """Class and rotation of normalised images; labels and routing have nothing to act on."""
        del labels, return_routing
        self.require_shape(images)
        numbers = self.numbers(images).to(self.a_weight().dtype)
        each = rearrange(numbers, "b (c q) -> b c q", q=_NUMBERS[self.rotation])
        rotations = rotations_of_6d(each) if self.rotation == "6d" else F.normalize(each, dim=-1)
        return PoseOutput(squash(each).norm(dim=-1), rotations)


@dataclass(frozen=True, kw_only=True)
class PoseMLPConfig:
    """Sizes of a perceptron; the defaults are those of the thesis."""

    in_channels: int = 3
    image_size: ImageSize = 28
    num_classes: int = 6
    hidden: tuple[int, ...] = (1024, 512, 256)
    rotation: RotationName = "quaternion"


class PoseMLP(PoseRegressor):
    """Fully connected layers with rectifiers between them."""

    config: PoseMLPConfig

    def __init__(self, config: PoseMLPConfig) -> None:
        super().__init__(config)
        channels, height, width = self.image_shape
        if min(height, width) < 1:
            raise UserError(f"image_size must be at least 1, got {config.image_size}")
        self.rotation = config.rotation
        outputs = _NUMBERS[config.rotation] * config.num_classes
        sizes = [channels * height * width, *config.hidden, outputs]
        layers = [layer for pair in pairwise(sizes) for layer in (nn.Linear(*pair), nn.ReLU())]
        self.layers = nn.Sequential(nn.Flatten(), *layers[:-1])

    def numbers(self, images: Float[Tensor, "batch channels height width"]) -> Float[Tensor, "batch numbers"]:
        """The numbers of each class."""
        return self.layers(images)


@dataclass(frozen=True, kw_only=True)
class PoseConvNetConfig:
    """Sizes of two convolutions; the defaults are those of the thesis."""

    in_channels: int = 3
    image_size: ImageSize = 28
    num_classes: int = 6
    channels: tuple[int, int] = (256, 128)
    kernel_size: int = 9
    rotation: RotationName = "quaternion"

    @property
    def stages(self) -> list[ConvStage]:
        """The sizes of the convolutions."""
        return [ConvStage("stem", self.kernel_size), ConvStage("features", self.kernel_size, 2)]


class PoseConvNet(PoseRegressor):
    """Two convolutions, the mean of the map, and a linear layer."""

    config: PoseConvNetConfig

    def __init__(self, config: PoseConvNetConfig) -> None:
        super().__init__(config)
        map_sizes(config.image_size, config.stages)  # raises where the image is too small
        first, second = config.channels
        self.stem = nn.Conv2d(config.in_channels, first, config.kernel_size)
        self.features = nn.Conv2d(first, second, config.kernel_size, 2)
        self.rotation = config.rotation
        self.head = nn.Linear(second, _NUMBERS[config.rotation] * config.num_classes)

    def numbers(self, images: Float[Tensor, "batch channels height width"]) -> Float[Tensor, "batch numbers"]:
        """The numbers of each class."""
        return self.head(self.features(self.stem(images).relu()).relu().mean((2, 3)))


register_variants(
    PoseMLP,
    family="pose_mlp",
    paper="renzulli2023thesis",
    task="pose",
    variants={
        "pose_mlp": PoseMLPConfig(),
        "pose_mlp_small": PoseMLPConfig(num_classes=2, hidden=(300, 100)),
        "pose_mlp_tiny_test": PoseMLPConfig(image_size=16, num_classes=3, hidden=(24,)),
    },
)
register_variants(
    PoseConvNet,
    family="pose_convnet",
    paper="renzulli2023thesis",
    task="pose",
    variants={
        "pose_convnet": PoseConvNetConfig(),
        "pose_convnet_6d": PoseConvNetConfig(rotation="6d"),
        "pose_convnet_tiny_test": PoseConvNetConfig(
            image_size=16, num_classes=3, channels=(6, 5), kernel_size=3
        ),
    },
)
