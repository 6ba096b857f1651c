"""DeepCaps (Rajasegaran et al. 2019): residual cells of convolutional capsules, one of them routed in 3-D."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import torch
from einops import rearrange
from jaxtyping import Float
from torch import Tensor, nn

from torchcaps.core import Capsules, ImageSize, LayerTrace, UserError, pose_lengths, sides, squash
from torchcaps.layers import (
    Conv3dRoutingCaps,
    ConvStage,
    PrimaryCaps,
    StagePadding,
    build_fc_caps,
    flatten_grid,
    map_sizes,
    too_small,
)
from torchcaps.routing import Gradient, RoutingSpec

from .api import register_variants
from .network import (
    CapsuleClassifier,
    CapsuleGrid,
    ConvStep,
    DecoderName,
    KeptSizes,
    Removable,
    build_decoder,
)

# Length of a pose before its squash, where those below have length one. The squash turns a short length n
# into n², so below a gain of 2 there is no length but zero that passes from layer to layer unchanged.
_GAIN = 4.0
HalvePadding = Literal["same", "symmetric"]
_SMALLEST_IMAGE = 9  # px: three cells halve it to 2


@dataclass(frozen=True, kw_only=True)
class DeepCapsConfig:
    """Sizes of a DeepCaps; the defaults are the authors' for 28 px images.

    The fields from `routing` to `norm_momentum` are where the thesis's port differs from the authors' code.
    """

    in_channels: int = 1
    image_size: ImageSize = 28
    num_classes: int = 10
    stem_channels: int = 128
    types: int = 32
    poses: tuple[int, int, int, int] = (4, 8, 8, 8)
    class_pose: int = 32
    routing: RoutingSpec = "dynamic"  # of the class capsules
    map_iterations: int = 3  # of the routed skip branch in the last cell
    map_gradient: Gradient = "full"
    map_bias: bool = True
    stem_relu: bool = True
    stem_squash: bool = False  # after the norm, each channel as a capsule of one dimension
    halve_padding: HalvePadding = "same"
    conv_bias: bool = False
    depth_kernel: int | None = None
    squash_jointly: bool = True
    norm_eps: float = 1e-3
    norm_momentum: float = 0.01  # share of the new batch, as PyTorch counts it
    voters: int = 0  # capsules that have a vote for classes, as `prune.shrink` leaves them; 0 means all
    decoder: DecoderName = "none"

    @property
    def stages(self) -> list[ConvStage]:
        """The stem and the convolution that halves the map in each cell."""
        cells = [ConvStage(f"cell{i}", 3, 2, self.halve_padding) for i in range(1, 5)]
        return [ConvStage("stem", 3, 1, "same"), *cells]


def as_channels(capsules: Capsules) -> Float[Tensor, "batch channels height width"]:
    """The poses of a grid side by side as channels, in the order (type, pose)."""
    return rearrange(capsules.poses, "b h w t d -> b (t d) h w")


class Cell(nn.Module):
    """Capsules at half the size, plus two residual branches on them: two convolutions, and the skip.

    Args:
        in_types: Capsule types of the map below.
        in_pose: Dimensions of their poses.
        types: Capsule types of all convolutions in the cell.
        pose: Dimensions of their poses.
        bias: Whether the convolutions have one.
        halve_padding: Of the convolution that halves the map.
        skip: What the skip branch does; by default one more convolution.
    """

    def __init__(
        self,
        in_types: int,
        in_pose: int,
        types: int,
        pose: int,
        *,
        bias: bool,
        halve_padding: HalvePadding = "same",
        skip: Conv3dRoutingCaps | None = None,
    ) -> None:
        super().__init__()

        def convolution(below: int, channels: int, stride: int = 1) -> PrimaryCaps:
            padding: StagePadding = "same" if stride == 1 else halve_padding
            layer = PrimaryCaps(
                channels, types, pose, kernel_size=3, stride=stride, padding=padding, bias=bias
            )
            nn.init.normal_(layer.conv.weight, std=_GAIN * (9 * below * pose) ** -0.5)
            return layer

        self.halve = convolution(in_types, in_types * in_pose, stride=2)
        self.main = nn.ModuleList([convolution(types, types * pose) for _ in range(2)])
        self.skip = convolution(types, types * pose) if skip is None else skip

    def forward(
        self, features: Float[Tensor, "batch channels height width"]
    ) -> tuple[Capsules, LayerTrace | None]:
        """The sum of both branches, not squashed again, and the routed skip where there is one."""
        start = self.halve(features)
        main = self.main[1](as_channels(self.main[0](as_channels(start))))
        if isinstance(self.skip, Conv3dRoutingCaps):
            trace = LayerTrace(start, self.skip(start))
            skip = trace.routed.poses
        else:
            trace, skip = None, self.skip(as_channels(start)).poses
        poses = main.poses + skip
        return Capsules(poses, pose_lengths(poses)), trace


class DeepCaps(CapsuleClassifier):
    """A convolution, four cells that each halve the map, and class capsules on the last two of them."""

    config: DeepCapsConfig

    def __init__(self, config: DeepCapsConfig) -> None:
        super().__init__(config)
        if min(sides(config.image_size)) < _SMALLEST_IMAGE:
            problem = "leaves layer 'cell4' no two positions to halve"
            raise too_small(config.image_size, problem, _SMALLEST_IMAGE)
        positions = [height * width for height, width in map_sizes(config.image_size, config.stages)]
        if config.norm_eps < 0:
            raise UserError(f"norm_eps must not be negative, got {config.norm_eps}")
        self.stem = nn.Conv2d(config.in_channels, config.stem_channels, 3, padding=1)
        self.norm = nn.BatchNorm2d(config.stem_channels, eps=config.norm_eps, momentum=config.norm_momentum)
        self.cells = self._build_cells(config)
        self.classes = build_fc_caps(
            config.types * (positions[-2] + positions[-1]),
            config.num_classes,
            config.poses[-1],
            config.class_pose,
            routing=config.routing,
            voters=config.voters,
        )
        self.decoder = build_decoder(config.decoder, config.num_classes, config.class_pose, self.image_shape)

    @staticmethod
    def _build_cells(config: DeepCapsConfig) -> nn.ModuleList:
        if len(config.poses) != 4:
            raise UserError(f"poses must name the pose of each of the four cells, got {config.poses}")
        if config.poses[-1] != config.poses[-2]:
            raise UserError(f"cells 3 and 4 feed the same class capsules: {config.poses} must end alike")
        routed_skip = Conv3dRoutingCaps(
            config.types,
            config.types,
            config.poses[-1],
            config.poses[-1],
            depth_kernel=config.depth_kernel,
            conv_bias=config.conv_bias,
            routing_bias=config.map_bias,
            iterations=config.map_iterations,
            gradient=config.map_gradient,
            squash_jointly=config.squash_jointly,
        )
        below = [(config.stem_channels, 1), *((config.types, pose) for pose in config.poses[:-1])]
        skips = [None, None, None, routed_skip]
        return nn.ModuleList(
            Cell(
                *sizes,
                config.types,
                pose,
                bias=config.conv_bias,
                halve_padding=config.halve_padding,
                skip=skip,
            )
            for sizes, pose, skip in zip(below, config.poses, skips, strict=True)
        )

    def encode(
        self, images: Float[Tensor, "batch channels height width"], *, return_coupling: bool = True
    ) -> tuple[LayerTrace, ...]:
        """The routed skip branch of the last cell, then the class layer."""
        features = self.stem(images)
        features = self.norm(features.relu() if self.config.stem_relu else features)
        if self.config.stem_squash:
            features = squash(features.unsqueeze(-1)).squeeze(-1)
        grids: list[Capsules] = []
        trace: LayerTrace | None = None
        for cell in self.cells:
            grid, trace = cell(features)
            grids.append(grid)
            features = as_channels(grid)
        third, fourth = (flatten_grid(grid) for grid in grids[-2:])
        children = Capsules(*(torch.cat(pair, dim=1) for pair in zip(third, fourth, strict=True)))
        assert trace is not None  # the last cell is always the routed one
        return trace, LayerTrace(children, self.classes(children, return_coupling=return_coupling))

    def capsule_grids(self) -> tuple[CapsuleGrid, ...]:
        """The last two cells."""
        stem, *cells = self.config.stages
        seen = [stem]
        for cell in cells:
            seen += [cell, *(ConvStage(f"{cell.name}.main", 3, 1, "same") for _ in range(2))]
        return tuple(CapsuleGrid(stages, self.config.types) for stages in (seen[:-3], seen))

    def removable(self) -> Removable:
        """Capsules of the last two cells that no class hears, and stem channels that no filter reads.

        Inside the cells maps are padded and added, where a constant channel is not constant.
        """
        rectifier = nn.ReLU() if self.config.stem_relu else nn.Identity()
        # the squash may follow the norm: of a padded map only zeros count, and it keeps them
        reader = self.cells[0].get_submodule("halve.conv")
        assert isinstance(reader, nn.Conv2d)
        return Removable(
            steps=[ConvStep("stem", self.stem, nn.Sequential(rectifier, self.norm), norm="norm")],
            reader=ConvStep("cells.0.halve.conv", reader, nn.Identity()),
            is_padded=True,
            parents_name="classes",
            parents=self.classes,
            types=1,
            selects=True,
        )

    def resized(self, kept: KeptSizes) -> DeepCapsConfig:
        """The config of the network that is left."""
        return replace(self.config, stem_channels=kept.widths[0], voters=kept.voters)


_THESIS_PORT = DeepCapsConfig(
    routing={"name": "dynamic", "gradient": "last", "inner_bias": False},
    map_gradient="last",
    map_bias=False,
    stem_relu=False,
    stem_squash=True,
    halve_padding="symmetric",
    conv_bias=True,
    depth_kernel=3,
    squash_jointly=False,
    norm_eps=1e-8,
    norm_momentum=0.99,
)
register_variants(
    DeepCaps,
    family="deepcaps",
    paper="rajasegaran2019deepcaps",
    variants={
        "deepcaps_28": DeepCapsConfig(),
        "deepcaps_64": DeepCapsConfig(in_channels=3, image_size=64),
        "deepcaps_28_thesis": _THESIS_PORT,
        "deepcaps_64_thesis": replace(_THESIS_PORT, in_channels=3, image_size=64),
        "deepcaps_tiny_test": DeepCapsConfig(
            image_size=20,
            num_classes=4,
            stem_channels=4,
            types=2,
            poses=(2, 4, 4, 4),
            class_pose=6,
            decoder="conv",
        ),
    },
)
