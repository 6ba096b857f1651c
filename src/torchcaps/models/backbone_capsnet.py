"""Capsules on a convolutional trunk (thesis chapter 5): primary and class capsules over its last map."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from torchcaps.core.errors import UserError
from torchcaps.core.types import LayerTrace
from torchcaps.layers import FcCaps, PrimaryCaps, flatten_grid
from torchcaps.layers.backbone import create_trunk
from torchcaps.routing import RoutingSpec

from .api import register_variants
from .classifier import CapsuleClassifier, DecoderName, build_decoder

OWN_TRUNK = "own"


@dataclass(frozen=True, kw_only=True)
class BackboneCapsNetConfig:
    """Trunk and head; `trunk_widths` replaces the trunk's channels, as pruning does.

    `factorised` splits the primary convolution, as wide as the map, into a depthwise and a pointwise one.
    `freeze_trunk` holds its weights and its batch-norm statistics.
    """

    in_channels: int = 3
    image_size: int = 64
    num_classes: int = 10
    trunk: str = "resnet50"
    trunk_widths: tuple[int, ...] | None = None
    freeze_trunk: bool = False
    factorised: bool = False
    primary_pose: int = 8
    class_pose: int = 16
    routing: RoutingSpec = "dynamic"
    decoder: DecoderName = "none"


def build_trunk(config: Any) -> nn.Module:
    """The trunk that a config names, where its image leaves a map."""
    if config.trunk == OWN_TRUNK:
        raise UserError(
            "this network stands on a trunk of your own; build it with capsule_head(trunk, config)"
        )
    trunk = create_trunk(config.trunk, in_channels=config.in_channels, widths=config.trunk_widths)
    stride = int(trunk.stride)  # type: ignore[arg-type]
    if config.image_size < stride:
        raise UserError(
            f"an image of {config.image_size} px leaves no map after layer 'trunk' ({config.trunk}, which "
            f"shrinks it {stride} times); the smallest that works is {stride} px"
        )
    return trunk


def _probe(trunk: nn.Module, image_shape: tuple[int, int, int]) -> torch.Size:
    """Shape of the trunk's answer to one blank image; the modes of its parts are as before afterwards."""
    modes = [(module, module.training) for module in trunk.modules()]
    example = next(trunk.parameters(), torch.empty(0))
    try:
        with torch.no_grad():
            features = trunk.eval()(example.new_zeros(1, *image_shape))
    except RuntimeError as error:
        size = "x".join(map(str, image_shape))
        raise UserError(f"the trunk gives no feature map for images of {size}: {error}") from error
    finally:
        for module, mode in modes:
            module.training = mode
    shape = features.shape if isinstance(features, Tensor) else None
    if shape is None or len(shape) != 4 or shape[2] != shape[3] or not all(shape):
        got = type(features).__name__ if shape is None else "x".join(map(str, shape))
        raise UserError(f"the trunk must give a square map (batch, channels, height, width), got {got}")
    return shape


class BackboneCapsNet(CapsuleClassifier):
    """A trunk, one primary kernel as wide as its map, and class capsules that see all of them."""

    config: BackboneCapsNetConfig

    def __init__(self, config: BackboneCapsNetConfig, trunk: nn.Module | None = None) -> None:
        super().__init__(config)
        self.trunk = build_trunk(config) if trunk is None else trunk
        _, channels, side, _ = _probe(self.trunk, self.image_shape)
        primary = channels // config.primary_pose
        if primary < 1:
            raise UserError(
                f"the trunk gives {channels} channels, too few for one capsule of {config.primary_pose}"
            )
        self.depthwise = nn.Conv2d(channels, channels, side, groups=channels) if config.factorised else None
        self.primary = PrimaryCaps(
            channels, primary, config.primary_pose, kernel_size=1 if config.factorised else side
        )
        self.classes = FcCaps(
            primary, config.num_classes, config.primary_pose, config.class_pose, routing=config.routing
        )
        self.decoder = build_decoder(config.decoder, config.num_classes, config.class_pose, self.image_shape)
        if config.freeze_trunk:
            self.trunk.requires_grad_(False).eval()

    def train(self, mode: bool = True) -> BackboneCapsNet:
        """Training mode for all but a frozen trunk, whose batch norm would go on counting."""
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


def capsule_head(trunk: nn.Module, config: BackboneCapsNetConfig | None = None) -> BackboneCapsNet:
    """A capsule network on any module that turns an image into a square feature map.

    Args:
        trunk: Used as it is, not copied.
        config: Head and image, by default ten classes at 64 px; its `trunk` and `trunk_widths` are not read.
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
