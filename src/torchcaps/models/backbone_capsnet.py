"""Capsules on a convolutional trunk (thesis chapter 5): primary and class capsules on its last map."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

import torch
from einops import reduce
from jaxtyping import Float, Int64
from torch import Tensor, nn

from torchcaps.core import ImageSize, LayerTrace, UserError, evaluating, sides
from torchcaps.layers import FcCaps, PrimaryCaps, flatten_grid, too_small
from torchcaps.layers.backbone import Trunk, create_trunk
from torchcaps.routing import RoutingSpec

from .api import register_variants
from .network import CapsuleClassifier, Cut, DecoderName, ModelConfig, build_decoder

OWN_TRUNK = "own"


@dataclass(frozen=True, kw_only=True)
class BackboneCapsNetConfig:
    """Trunk and head; `trunk_widths` replaces the trunk's channels, as pruning does.

    `factorised` splits the primary convolution, as wide as the map, into a depthwise and a pointwise one.
    `freeze_trunk` holds its weights and its batch-norm statistics.
    """

    in_channels: int = 3
    image_size: ImageSize = 64
    num_classes: int = 10
    trunk: str = "resnet50"
    trunk_widths: tuple[int, ...] | None = None
    freeze_trunk: bool = False
    factorised: bool = False
    primary_pose: int = 8
    class_pose: int = 16
    routing: RoutingSpec = "dynamic"
    decoder: DecoderName = "none"


@runtime_checkable
class TrunkConfig(ModelConfig, Protocol):
    """The fields of a config that describe a trunk."""

    @property
    def trunk(self) -> str:
        """Its registered name."""
        ...

    @property
    def trunk_widths(self) -> tuple[int, ...] | None:
        """Channels of its groups where they are not the registered ones."""
        ...


def build_trunk(config: TrunkConfig) -> Trunk:
    """The trunk that a config names; an image that leaves no map is an error."""
    if config.trunk == OWN_TRUNK:
        raise UserError(
            "this network stands on a trunk of your own; build it with capsule_head(trunk, config)"
        )
    trunk = create_trunk(config.trunk, in_channels=config.in_channels, widths=config.trunk_widths)
    if min(sides(config.image_size)) < trunk.stride:
        problem = f"leaves no map after layer 'trunk' ({config.trunk}, which shrinks it {trunk.stride} times)"
        raise too_small(config.image_size, problem, trunk.stride)
    return trunk


def _probe(trunk: nn.Module, image_shape: tuple[int, int, int]) -> torch.Size:
    """Shape of the trunk's answer to one blank image."""
    example = next(trunk.parameters(), torch.empty(0))
    try:
        with torch.no_grad(), evaluating(trunk):
            features = trunk(example.new_zeros(1, *image_shape))
    except RuntimeError as error:
        size = "x".join(map(str, image_shape))
        raise UserError(f"the trunk gives no feature map for images of {size}: {error}") from error
    shape = features.shape if isinstance(features, Tensor) else None
    if shape is None or len(shape) != 4 or not all(shape):
        got = type(features).__name__ if shape is None else "x".join(map(str, shape))
        raise UserError(f"the trunk must give a map (batch, channels, height, width), got {got}")
    return shape


class BackboneCapsNet(CapsuleClassifier):
    """A trunk, one primary kernel as wide as its map, and class capsules that see all of them."""

    config: BackboneCapsNetConfig

    def __init__(self, config: BackboneCapsNetConfig, trunk: nn.Module | None = None) -> None:
        super().__init__(config)
        self.trunk: nn.Module = build_trunk(config) if trunk is None else trunk
        _, channels, *whole_map = _probe(self.trunk, self.image_shape)
        kernel = (whole_map[0], whole_map[1])
        primary = channels // config.primary_pose
        if primary < 1:
            raise UserError(
                f"the trunk gives {channels} channels, too few for one capsule of {config.primary_pose}"
            )
        self.depthwise = nn.Conv2d(channels, channels, kernel, groups=channels) if config.factorised else None
        self.primary = PrimaryCaps(
            channels, primary, config.primary_pose, kernel_size=1 if config.factorised else kernel
        )
        self.classes = FcCaps(
            primary, config.num_classes, config.primary_pose, config.class_pose, routing=config.routing
        )
        self.decoder = build_decoder(config.decoder, config.num_classes, config.class_pose, self.image_shape)
        if config.freeze_trunk:
            self.trunk.requires_grad_(False).eval()

    def train(self, mode: bool = True) -> BackboneCapsNet:
        """Set the mode; a frozen trunk stays in evaluation mode, so that its batch norms keep their state."""
        super().train(mode)
        if self.config.freeze_trunk:
            self.trunk.eval()
        return self

    def encode(
        self, images: Float[Tensor, "batch channels height width"], *, return_coupling: bool = True
    ) -> tuple[LayerTrace, ...]:
        """The class layer, the only routed one."""
        features = self.trunk(images).relu()
        if self.depthwise is not None:
            features = self.depthwise(features)
        children = flatten_grid(self.primary(features))
        return (LayerTrace(children, self.classes(children, return_coupling=return_coupling)),)

    @property
    def least_channels(self) -> int:
        """The channels of one primary capsule."""
        return self.config.primary_pose

    def head_cuts(self, channels: Int64[Tensor, " kept"]) -> dict[str, Cut]:
        """Primary capsules as far as whole poses are left, those with the largest filters.

        A primary capsule that is left out casts no vote, so dynamic routing gives what it gives for a pose of
        zero.
        """
        pose = self.config.primary_pose
        norms = reduce(self.primary.conv.weight.detach().abs(), "(t d) c h w -> t", "sum", d=pose)
        capsules = norms.topk(len(channels) // pose).indices.sort().values.cpu()
        rows = (capsules.unsqueeze(1) * pose + torch.arange(pose)).flatten()
        has_own_matrices = len(self.classes.weight) == self.classes.in_caps
        return {
            "depthwise.weight": (channels,),
            "depthwise.bias": (channels,),
            "primary.conv.weight": (rows, channels),
            "primary.conv.bias": (rows,),
            **({"classes.weight": (capsules,)} if has_own_matrices else {}),
        }


def capsule_head(trunk: nn.Module, config: BackboneCapsNetConfig | None = None) -> BackboneCapsNet:
    """A capsule network on any module that turns an image into a feature map.

    Args:
        trunk: Used as it is, not copied.
        config: Head and image, by default ten classes at 64 px; its `trunk` and `trunk_widths` are not read.

    Examples:
        >>> trunk = torch.nn.Conv2d(3, 64, 5, stride=4)
        >>> capsule_head(trunk)(torch.rand(2, 3, 64, 64)).activations.shape
        torch.Size([2, 10])
    """
    config = BackboneCapsNetConfig() if config is None else config
    return BackboneCapsNet(replace(config, trunk=OWN_TRUNK, trunk_widths=None), trunk)


register_variants(
    BackboneCapsNet,
    family="backbone_capsnet",
    paper="renzulli2022towards",
    variants={
        "resnet50_capsnet_64": BackboneCapsNetConfig(),
        "mobilenetv1_capsnet_64": BackboneCapsNetConfig(trunk="mobilenetv1"),
        "backbone_capsnet_tiny_test": BackboneCapsNetConfig(
            in_channels=1,
            image_size=16,
            num_classes=4,
            trunk="resnet_tiny",
            primary_pose=4,
            class_pose=6,
            decoder="fc",
        ),
    },
)
