"""SegCaps (LaLonde & Bagci 2018): a U-shaped network of locally-constrained capsules."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from einops import rearrange
from jaxtyping import Float
from torch import Tensor, nn

from torchcaps.core import Capsules, ImageSize, LayerTrace, SegmentationOutput, UserError, pose_lengths
from torchcaps.layers import LocalConvCaps2d, LocalDeconvCaps2d
from torchcaps.routing import RoutingSpec

from .api import register_variants
from .network import RoutedLevels, Segmenter

LayerSize = tuple[int, int]  # capsule types and pose dimensions


def _even_split() -> RoutingSpec:
    return {"name": "dynamic", "iterations": 1}


@dataclass(frozen=True, kw_only=True)
class SegCapsConfig:
    """Sizes of a SegCaps, each layer as (types, pose); the defaults are those of the paper.

    `down` lists per level the layer that keeps the size and the one that halves it. `up` lists the layer that
    doubles the size and the one that joins the result with the layer of the same size in `down`; `last_up` is
    joined with the stem. Layers that halve or double take `resize_routing` where it is given, the deepest one
    `bottom_routing`. With `deep_supervision` each level of `up` gets class capsules of its own, for training.
    """

    in_channels: int = 1
    image_size: ImageSize = 128
    num_classes: int = 1
    kernel_size: int = 5
    stem_pose: int = 16
    primary: LayerSize = (2, 16)
    down: tuple[tuple[LayerSize, LayerSize], ...] = (((4, 16), (4, 32)), ((8, 32), (8, 64)))
    bottom: LayerSize = (8, 32)
    up: tuple[tuple[LayerSize, LayerSize], ...] = (((8, 32), (4, 32)), ((4, 16), (4, 16)))
    last_up: LayerSize = (2, 16)
    class_pose: int = 16
    routing: RoutingSpec = "dynamic"
    resize_routing: RoutingSpec | None = None
    bottom_routing: RoutingSpec | None = None
    primary_routing: RoutingSpec = field(default_factory=_even_split)
    reconstruction: bool = False
    deep_supervision: bool = False
    checkpoint: bool = False

    def check(self) -> None:
        """Raise when a skip connection would join poses of different dimensions."""
        if len(self.up) != len(self.down):
            raise UserError(f"down has {len(self.down)} levels and up {len(self.up)}; they must be as many")
        grown = [double for double, _ in self.up] + [self.last_up]
        skipped = [keep for keep, _ in reversed(self.down)] + [(1, self.stem_pose)]
        for level, ((_, pose), (_, skip_pose)) in enumerate(zip(grown, skipped, strict=True)):
            if pose != skip_pose:
                raise UserError(
                    f"level {level} on the way up has poses of {pose} dimensions and its skip connection "
                    f"{skip_pose}; they must be equal"
                )


def _join(left: Capsules, right: Capsules) -> Capsules:
    poses = left.poses, right.poses
    # types outermost, and what lies innermost stays so: the next layer takes each type's map without a copy
    inner = "h w d" if left.poses.stride(-1) == 1 else "d h w"
    joined = torch.cat([rearrange(each, f"b h w t d -> b t {inner}") for each in poses], dim=1)
    return Capsules(
        rearrange(joined, f"b t {inner} -> b h w t d"),
        torch.cat([left.activations, right.activations], dim=-1),
    )


class _Builder:
    """Makes layers that fit on top of each other; `size` is that of the last one."""

    def __init__(self, config: SegCapsConfig) -> None:
        self.config = config
        self.size: LayerSize = (1, config.stem_pose)
        self.resize_routing = config.routing if config.resize_routing is None else config.resize_routing

    def keep(
        self, out: LayerSize, kernel_size: int | None = None, routing: RoutingSpec | None = None
    ) -> nn.Module:
        spec = self.config.routing if routing is None else routing
        return self._conv(out, spec, kernel_size=kernel_size or self.config.kernel_size)

    def beside(self, out: LayerSize) -> nn.Module:
        """A layer of single positions on top of the last one; the next one does not see it."""
        below = self.size
        layer = self.keep(out, kernel_size=1)
        self.size = below
        return layer

    def halve(self, out: LayerSize, routing: RoutingSpec | None = None) -> nn.Module:
        spec = self.resize_routing if routing is None else routing
        return self._conv(out, spec, kernel_size=self.config.kernel_size, stride=2)

    def double(self, out: LayerSize, skip_types: int) -> nn.Module:
        """Doubles the size; the next layer also sees the `skip_types` types of a skip connection."""
        (in_types, in_pose), self.size = self.size, (out[0] + skip_types, out[1])
        return LocalDeconvCaps2d(
            in_types,
            out[0],
            in_pose,
            out[1],
            routing=self.resize_routing,
            checkpoint=self.config.checkpoint,
        )

    def _conv(self, out: LayerSize, routing: RoutingSpec, *, kernel_size: int, stride: int = 1) -> nn.Module:
        (in_types, in_pose), self.size = self.size, out
        return LocalConvCaps2d(
            in_types,
            out[0],
            in_pose,
            out[1],
            kernel_size=kernel_size,
            stride=stride,
            routing=routing,
            checkpoint=self.config.checkpoint,
        )


def _reconstruction_head(in_channels: int, out_channels: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(in_channels, 64, 1),
        nn.ReLU(),
        nn.Conv2d(64, 128, 1),
        nn.ReLU(),
        nn.Conv2d(128, out_channels, 1),
        nn.Sigmoid(),
    )


class SegCaps(Segmenter):
    """Capsules down to an eighth of the size and up again; the length of the last ones marks the object."""

    config: SegCapsConfig

    def __init__(self, config: SegCapsConfig) -> None:
        config.check()
        super().__init__(config, halvings=len(config.down) + 1)
        self.stem = nn.Conv2d(config.in_channels, config.stem_pose, config.kernel_size, padding="same")
        build = _Builder(config)
        self.primary = build.halve(config.primary, config.primary_routing)
        self.same, self.shrink = nn.ModuleList(), nn.ModuleList()
        for keep, halve in config.down:
            self.same.append(build.keep(keep))
            self.shrink.append(build.halve(halve))
        self.bottom = build.keep(config.bottom, routing=config.bottom_routing)
        self.grow, self.merge, self.deep = nn.ModuleList(), nn.ModuleList(), nn.ModuleList()
        for (double, join), ((skip_types, _), _) in zip(config.up, reversed(config.down), strict=True):
            self.grow.append(build.double(double, skip_types))
            self.merge.append(build.keep(join))
            if config.deep_supervision:
                self.deep.append(build.beside((config.num_classes, config.class_pose)))
        self.last_up = build.double(config.last_up, skip_types=1)
        self.classes = build.keep((config.num_classes, config.class_pose), kernel_size=1)
        self.reconstruction = (
            _reconstruction_head(config.num_classes * config.class_pose, config.in_channels)
            if config.reconstruction
            else None
        )

    @property
    def decoder(self) -> nn.Module | None:  # type: ignore[override]  # a property, for state dicts keep its name
        """The head that draws the image, if there is one."""
        return self.reconstruction

    def routed_levels(self) -> RoutedLevels:
        """All routed layers in the order in which `encode` calls them."""
        down = [layer for pair in zip(self.same, self.shrink, strict=True) for layer in pair]
        up = [layer for pair in zip(self.grow, self.merge, strict=True) for layer in pair]
        return RoutedLevels(
            self.config.kernel_size,
            (self.primary, *down, self.bottom),  # type: ignore[arg-type]
            (*up, self.last_up, self.classes),  # type: ignore[arg-type]
        )

    def encode(
        self, images: Float[Tensor, "batch channels height width"], *, return_coupling: bool = True
    ) -> list[LayerTrace]:
        """Every routed layer, from the primary capsules to those of the classes."""
        traces: list[LayerTrace] = []

        def route(layer: nn.Module, children: Capsules) -> Capsules:
            traces.append(LayerTrace(children, layer(children, return_coupling=return_coupling)))
            return traces[-1].routed.capsules

        stem = rearrange(self.stem(images).relu(), "b d h w -> b h w 1 d")
        stem = stem if stem.dtype == torch.float64 else stem.float()
        skips = [Capsules(stem, pose_lengths(stem))]
        capsules = route(self.primary, skips[0])
        for same, shrink in zip(self.same, self.shrink, strict=True):
            skips.append(route(same, capsules))
            capsules = route(shrink, skips[-1])
        capsules = route(self.bottom, capsules)
        for grow, merge in zip(self.grow, self.merge, strict=True):
            capsules = route(merge, _join(route(grow, capsules), skips.pop()))
        route(self.classes, _join(route(self.last_up, capsules), skips.pop()))
        return traces

    def forward(
        self,
        images: Float[Tensor, "batch channels height width"],
        masks: Float[Tensor, "batch classes height width"] | None = None,
        *,
        return_routing: bool = False,
    ) -> SegmentationOutput:
        """Lengths of the class capsules at each pixel.

        Args:
            images: Of any size whose sides are multiples of 8 (for the published depth).
            masks: Blank the capsules outside them before the reconstruction; without them all are shown.
            return_routing: Also return the result of every routed layer.
        """
        self._check(images)
        layers = self.encode(images, return_coupling=return_routing)
        poses, lengths, _ = layers[-1].routed
        reconstruction = None
        if self.reconstruction is not None:
            shown = poses if masks is None else poses * rearrange(masks, "b o h w -> b h w o 1")
            reconstruction = self.reconstruction(rearrange(shown, "b h w o d -> b (o d) h w"))
        return SegmentationOutput(
            activations=_as_maps(lengths),
            reconstruction=reconstruction,
            layers=tuple(layers) if return_routing else (),
            deeper=self._deeper(layers) if self.training else (),
        )

    def _deeper(self, layers: list[LayerTrace]) -> tuple[Tensor, ...]:
        """Masks of the levels on the way up, the smallest first; none without deep supervision."""
        # the traces end in one that doubles and one that joins for each level, then two more layers
        joined = layers[-2 * len(self.deep) - 1 : -2 : 2]
        return tuple(
            _as_maps(head(trace.routed.capsules, return_coupling=False).activations)
            for head, trace in zip(self.deep, joined, strict=True)
        )


def _as_maps(lengths: Float[Tensor, "b h w o"]) -> Float[Tensor, "b o h w"]:
    return rearrange(lengths, "b h w o -> b o h w")


register_variants(
    SegCaps,
    family="segcaps",
    paper="lalonde2018capsules",
    task="segmentation",
    variants={
        "segcaps_r3": SegCapsConfig(),
        "segcaps_r1": SegCapsConfig(routing=_even_split()),
        # the authors' released R1 keeps three iterations where the size changes
        "segcaps_r1_released": SegCapsConfig(routing=_even_split(), resize_routing="dynamic"),
        "segcaps_tiny_test": SegCapsConfig(
            image_size=16,
            kernel_size=3,
            stem_pose=4,
            primary=(2, 4),
            down=(((2, 4), (2, 6)),),
            bottom=(3, 6),
            up=(((2, 4), (2, 4)),),
            last_up=(2, 4),
            class_pose=4,
            reconstruction=True,
        ),
    },
)
