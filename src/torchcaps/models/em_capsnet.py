"""EM-CapsNet (Hinton, Sabour & Frosst 2018): matrix poses, two convolutional layers and class capsules by EM.

Weights, with A stem channels, B primary types, C and D types of the two layers, E classes and k input
channels: stem 25kA + A; primary 17B(A + 1), sixteen of the seventeen being the pose; layers 9 * 16 * BC and 9
* 16 * CD; classes 16DE, one 4x4 matrix per (type, class) for all positions; and beta_a, beta_u per parent
type, 2(C + D + E). A = B = C = D = 32, E = 5, k = 2 gives 1,632 + 17,952 + 147,456 + 147,456 + 2,560 + 138 =
317,194, and 64/8/16/16 gives 3,264 + 8,840 + 18,432 + 36,864 + 1,280 + 74 = 68,754.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from einops import rearrange
from jaxtyping import Float
from torch import Tensor, nn

from torchcaps.core import Capsules, ImageSize, LayerTrace, require_equal_lengths, sides
from torchcaps.layers import (
    ConvCaps2d,
    ConvStage,
    CoordinateAddition,
    FcCaps,
    PositionalEM,
    flatten_grid,
    map_sizes,
    receptive_field,
)
from torchcaps.routing import EMRouting, Routing, RoutingShape, RoutingSpec, build_routing

from .api import register_variants
from .network import CapsuleClassifier, CapsuleGrid, DecoderName, build_decoder, route_in_turn

_SIDE = 4  # a pose is a 4x4 matrix
_POSE = _SIDE**2
_KERNEL = 3  # of the convolutional layers
_PIXELS_PER_UNIT = 100  # coordinates in pixels would dwarf the votes they are added to


@dataclass(frozen=True, kw_only=True)
class EMCapsNetConfig:
    """Sizes of an EM-CapsNet; the defaults are those for smallNORB.

    With EM routing the parents of all positions compete in the convolutional layers; any other routing lets
    those of one position compete.
    """

    in_channels: int = 2
    image_size: ImageSize = 32
    num_classes: int = 5
    stem_channels: int = 32
    primary_types: int = 32
    types: tuple[int, int] = (32, 32)
    strides: tuple[int, int] = (2, 1)
    coordinate_components: tuple[int, int] = (0, 1)  # the paper's text names the last column instead: (3, 7)
    routing: RoutingSpec = "em"
    decoder: DecoderName = "none"

    @property
    def stages(self) -> list[ConvStage]:
        """All convolutions, the 1x1 one of the primary capsules included."""
        layers = [ConvStage(f"layers.{i}", _KERNEL, stride) for i, stride in enumerate(self.strides)]
        return [ConvStage("stem", 5, 2), ConvStage("primary", 1), *layers]


class MatrixPrimaryCaps(nn.Module):
    """Capsules read off each position of a feature map: a matrix pose, not squashed, and a probability."""

    def __init__(self, in_channels: int, types: int) -> None:
        super().__init__()
        self.types = types
        self.poses = nn.Conv2d(in_channels, types * _POSE, 1)
        self.activations = nn.Conv2d(in_channels, types, 1)

    def forward(self, features: Float[Tensor, "batch channels height width"]) -> Capsules:
        """Capsules at (batch, rows, columns), in at least float32."""
        poses = rearrange(self.poses(features), "b (t d) h w -> b h w t d", t=self.types)
        logits = rearrange(self.activations(features), "b t h w -> b h w t")
        dtype = self.poses.weight.dtype
        return Capsules(poses.to(dtype), logits.to(dtype).sigmoid())


def child_coordinates(config: EMCapsNetConfig) -> Float[Tensor, "in_caps 2"]:
    """Centre of each child's receptive field from the centre of the image, in hundreds of pixels."""
    counts = map_sizes(config.image_size, config.stages)[-1]
    field = receptive_field(config.image_size, config.stages)
    axes = [
        (first + field.step * torch.arange(count) - (pixels - 1) / 2) / _PIXELS_PER_UNIT
        for first, count, pixels in zip(field.first, counts, sides(config.image_size), strict=True)
    ]
    grid = torch.stack(torch.meshgrid(*axes, indexing="ij"), dim=-1)
    return grid.flatten(0, 1).repeat_interleave(config.types[-1], dim=0)


def _window_routing(spec: RoutingSpec, shape: RoutingShape, stride: int) -> Routing:
    routing = build_routing(spec, shape)
    if type(routing) is not EMRouting:  # a derived class may route in another way
        return routing
    return PositionalEM(
        shape,
        kernel_size=_KERNEL,
        stride=stride,
        iterations=routing.iterations,
        inverse_temperature=routing.inverse_temperature,
        min_variance=routing.min_variance,
    )


class EMCapsNet(CapsuleClassifier):
    """A strided convolution, primary capsules at each position, two convolutional layers, class capsules."""

    config: EMCapsNetConfig

    def __init__(self, config: EMCapsNetConfig) -> None:
        super().__init__(config)
        require_equal_lengths(types=config.types, strides=config.strides)
        height, width = map_sizes(config.image_size, config.stages)[-1]
        self.stem = nn.Conv2d(config.in_channels, config.stem_channels, 5, 2)
        self.primary = MatrixPrimaryCaps(config.stem_channels, config.primary_types)
        below = (config.primary_types, *config.types)
        self.layers = nn.ModuleList(
            ConvCaps2d(
                in_types,
                out_types,
                _POSE,
                _POSE,
                kernel_size=_KERNEL,
                stride=stride,
                pose_rows=_SIDE,
                init_std=_SIDE**-0.5,  # keeps the scale of the poses
                routing=_window_routing(
                    config.routing, RoutingShape(_KERNEL**2 * in_types, out_types, _POSE), stride
                ),
            )
            for in_types, out_types, stride in zip(below[:-1], config.types, config.strides, strict=True)
        )
        children = height * width * config.types[-1]
        routing = build_routing(config.routing, RoutingShape(children, config.num_classes, _POSE))
        self.classes = FcCaps(
            children,
            config.num_classes,
            _POSE,
            _POSE,
            matrices=config.types[-1],
            pose_rows=_SIDE,
            init_std=_SIDE**-0.5,
            routing=CoordinateAddition(routing, child_coordinates(config), config.coordinate_components),
        )
        self.decoder = build_decoder(config.decoder, config.num_classes, _POSE, self.image_shape)

    def encode(
        self, images: Float[Tensor, "batch channels height width"], *, return_coupling: bool = True
    ) -> tuple[LayerTrace, ...]:
        """The two convolutional layers and the class layer."""
        primary = self.primary(self.stem(images).relu())
        traces = route_in_turn(self.layers, primary, return_coupling=return_coupling)
        children = flatten_grid(traces[-1].routed.capsules)
        return *traces, LayerTrace(children, self.classes(children, return_coupling=return_coupling))

    def capsule_grids(self) -> tuple[CapsuleGrid, ...]:
        """The capsules of the second convolutional layer, which the class capsules see."""
        return (CapsuleGrid(self.config.stages, self.config.types[-1]),)


register_variants(
    EMCapsNet,
    family="em_capsnet",
    paper="hinton2018matrix",
    variants={
        "em_capsnet_base": EMCapsNetConfig(),
        "em_capsnet_small": EMCapsNetConfig(stem_channels=64, primary_types=8, types=(16, 16)),
        "em_capsnet_tiny_test": EMCapsNetConfig(
            in_channels=1,
            image_size=20,
            num_classes=4,
            stem_channels=4,
            primary_types=2,
            types=(3, 2),
            decoder="fc",
        ),
    },
)
