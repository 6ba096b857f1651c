"""Descriptors of places (thesis, chapter LSVL): a trunk with a fully connected or a capsule head."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from einops import rearrange
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from torchcaps.core import Capsules, DescriptorOutput, ImageSize, LayerTrace, UserError, sides
from torchcaps.layers import FcCaps, PrimaryCaps, flatten_grid
from torchcaps.routing import RoutingSpec

from .api import register_variants
from .backbone_capsnet import build_trunk
from .network import Network


@dataclass(frozen=True, kw_only=True)
class DescriptorConfig:
    """Trunk and head; the defaults are those of the thesis.

    The head "fcn" has one hidden layer of `hidden` numbers; the head "capsules" has `primary_types` types of
    primary capsules at each position of the map and `capsules` capsules above them.
    """

    in_channels: int = 3
    image_size: ImageSize = 100
    descriptor: int = 16
    trunk: str = "resnet50"
    trunk_widths: tuple[int, ...] | None = None
    head: Literal["fcn", "capsules"] = "fcn"
    hidden: int = 1024
    primary_types: int = 64
    primary_pose: int = 16
    capsules: int = 32
    pose: int = 32
    routing: RoutingSpec = field(default_factory=lambda: {"name": "dynamic", "bias": False})

    @property
    def num_classes(self) -> int:
        """A descriptor network tells no classes apart."""
        return 0


class CapsuleHead(nn.Module):
    """Primary capsules at each position, capsules that see all of them, and a linear layer on their poses."""

    def __init__(self, config: DescriptorConfig, channels: int, positions: int) -> None:
        super().__init__()
        self.primary = PrimaryCaps(channels, config.primary_types, config.primary_pose, kernel_size=1)
        self.capsules = FcCaps(
            positions * config.primary_types,
            config.capsules,
            config.primary_pose,
            config.pose,
            routing=config.routing,
        )
        self.descriptor = nn.Linear(config.capsules * config.pose, config.descriptor)

    def encode(self, features: Tensor, *, return_coupling: bool) -> LayerTrace:
        """The routed layer."""
        children: Capsules = flatten_grid(self.primary(features))
        return LayerTrace(children, self.capsules(children, return_coupling=return_coupling))


class DescriptorNetwork(Network):
    """A unit vector for each image, near those of images of the same place."""

    config: DescriptorConfig
    decoder = None

    def __init__(self, config: DescriptorConfig) -> None:
        super().__init__(config)
        if config.descriptor < 2:
            raise UserError(f"descriptor must have at least 2 numbers, got {config.descriptor}")
        self.trunk = build_trunk(config)
        height, width = (-(-side // self.trunk.stride) for side in sides(config.image_size))
        channels, positions = self.trunk.out_channels, height * width
        self.head: CapsuleHead | nn.Sequential
        if config.head == "capsules":
            self.head = CapsuleHead(config, channels, positions)
        else:
            self.head = nn.Sequential(
                nn.Flatten(),
                nn.Linear(channels * positions, config.hidden),
                nn.ReLU(),
                nn.Linear(config.hidden, config.descriptor),
            )

    def forward(
        self, images: Float[Tensor, "batch channels height width"], *, return_routing: bool = False
    ) -> DescriptorOutput:
        """Descriptors of normalised images, with the routed layer where it is asked for and there is one."""
        self.require_shape(images)
        features = self.trunk(images).relu()
        if isinstance(self.head, nn.Sequential):
            return DescriptorOutput(self._unit(self.head(features)))
        trace = self.head.encode(features, return_coupling=return_routing)
        poses = rearrange(trace.routed.poses, "b c d -> b (c d)")
        descriptors = self._unit(self.head.descriptor(poses))
        return DescriptorOutput(descriptors, layers=(trace,) if return_routing else ())

    def _unit(self, numbers: Tensor) -> Tensor:
        return F.normalize(numbers.to(self.a_weight().dtype), dim=-1)


register_variants(
    DescriptorNetwork,
    family="descriptor",
    paper="renzulli2023thesis",
    task="retrieval",
    variants={
        "descriptor_fcn": DescriptorConfig(),
        "descriptor_capsules": DescriptorConfig(head="capsules"),
        "descriptor_tiny_test": DescriptorConfig(
            image_size=32, descriptor=4, trunk="mobilenet_tiny", hidden=8
        ),
        "descriptor_capsules_tiny_test": DescriptorConfig(
            image_size=32,
            descriptor=4,
            trunk="mobilenet_tiny",
            head="capsules",
            primary_types=2,
            primary_pose=4,
            capsules=3,
            pose=4,
        ),
    },
)
