"""Networks for class and rotation (thesis, chapter on rotations): a perceptron and a convolutional one."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from itertools import pairwise

from einops import rearrange
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from torchcaps.core import ImageSize, UserError, squash
from torchcaps.core.types import PoseOutput
from torchcaps.layers import ConvStage, map_sizes

from .api import register_variants
from .network import ModelConfig, Network

_QUATERNION = 4  # w, x, y, z


class PoseNetwork(Network):
    """Four numbers for each class: their squashed length is its activation, their direction its rotation."""

    decoder = None

    def __init__(self, config: ModelConfig) -> None:
        if config.num_classes < 2:
            raise UserError(f"num_classes must be at least 2, got {config.num_classes}")
        super().__init__(config)

    @abstractmethod
    def quaternions(
        self, images: Float[Tensor, "batch channels height width"]
    ) -> Float[Tensor, "batch numbers"]:
        """The four numbers of each class, one class after the other, of any length."""

    def forward(
        self,
        images: Float[Tensor, "batch channels height width"],
        labels: Int[Tensor, " batch"] | None = None,
        *,
        return_routing: bool = False,
    ) -> PoseOutput:
        """Class and rotation of normalised images; labels and routing have nothing to act on."""
        del labels, return_routing
        self.require_images(images)
        if images.shape[1:] != self.image_shape:
            expected, got = ("x".join(map(str, shape)) for shape in (self.image_shape, images.shape[1:]))
            raise UserError(f"this {type(self).__name__} takes images of {expected}, got {got}")
        numbers = self.quaternions(images).to(next(self.parameters()).dtype)
        each = rearrange(numbers, "b (c q) -> b c q", q=_QUATERNION)
        return PoseOutput(squash(each).norm(dim=-1), F.normalize(each, dim=-1))


@dataclass(frozen=True, kw_only=True)
class PoseMLPConfig:
    """Sizes of a perceptron; the defaults are those of the thesis."""

    in_channels: int = 3
    image_size: ImageSize = 28
    num_classes: int = 6
    hidden: tuple[int, ...] = (1024, 512, 256)


class PoseMLP(PoseNetwork):
    """Fully connected layers with rectifiers between them."""

    config: PoseMLPConfig

    def __init__(self, config: PoseMLPConfig) -> None:
        super().__init__(config)
        channels, height, width = self.image_shape
        sizes = [channels * height * width, *config.hidden, _QUATERNION * config.num_classes]
        layers = [layer for pair in pairwise(sizes) for layer in (nn.Linear(*pair), nn.ReLU())]
        self.layers = nn.Sequential(nn.Flatten(), *layers[:-1])

    def quaternions(
        self, images: Float[Tensor, "batch channels height width"]
    ) -> Float[Tensor, "batch numbers"]:
        """Four numbers for each class."""
        return self.layers(images)


@dataclass(frozen=True, kw_only=True)
class PoseConvNetConfig:
    """Sizes of two convolutions; the defaults are those of the thesis."""

    in_channels: int = 3
    image_size: ImageSize = 28
    num_classes: int = 6
    channels: tuple[int, int] = (256, 128)
    kernel_size: int = 9

    @property
    def stages(self) -> list[ConvStage]:
        """The sizes of the convolutions."""
        return [ConvStage("stem", self.kernel_size), ConvStage("features", self.kernel_size, 2)]


class PoseConvNet(PoseNetwork):
    """Two convolutions, the mean of the map, and a linear layer."""

    config: PoseConvNetConfig

    def __init__(self, config: PoseConvNetConfig) -> None:
        super().__init__(config)
        map_sizes(config.image_size, config.stages)  # raises where the image is too small
        first, second = config.channels
        self.stem = nn.Conv2d(config.in_channels, first, config.kernel_size)
        self.features = nn.Conv2d(first, second, config.kernel_size, 2)
        self.head = nn.Linear(second, _QUATERNION * config.num_classes)

    def quaternions(
        self, images: Float[Tensor, "batch channels height width"]
    ) -> Float[Tensor, "batch numbers"]:
        """Four numbers for each class."""
        return self.head(self.features(self.stem(images).relu()).relu().mean((2, 3)))


register_variants(
    PoseMLP,
    family="pose_mlp",
    paper="renzulli2023thesis",
    task="pose",
    variants={
        "pose_mlp": PoseMLPConfig(),
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
        "pose_convnet_tiny_test": PoseConvNetConfig(
            image_size=16, num_classes=3, channels=(6, 5), kernel_size=3
        ),
    },
)
