"""Where on the image the capsules stand that vote for the classes, for networks in which they do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from torchcaps.core.errors import UserError
from torchcaps.core.types import LayerTrace
from torchcaps.layers import map_sizes
from torchcaps.models.deepcaps import DeepCaps

from .contribution import contribution_map
from .saliency import Grid, ReceptiveField, place_heat, receptive_field, saliency_map


class CapsuleMap(NamedTuple):
    """A grid of capsules, and where each looks."""

    grid: Grid
    field: ReceptiveField

    @property
    def capsules(self) -> int:
        """How many there are."""
        height, width, types = self.grid
        return height * width * types


def fully_connected(layers: Sequence[LayerTrace]) -> tuple[LayerTrace, ...]:
    """The layers that a tree can be drawn of: the last ones, as far as none is a convolution."""
    chain: list[LayerTrace] = []
    for trace in reversed(layers):
        if trace.routed.coupling is None or trace.routed.coupling.ndim != 3:
            break
        chain.insert(0, trace)
    if not chain:
        raise UserError("the network does not end in a fully connected capsule layer: it has no parse trees")
    return tuple(chain)


def capsule_maps(network: nn.Module, in_caps: int) -> tuple[CapsuleMap, ...]:
    """The maps on which `in_caps` children of the first fully connected layer stand, in their order.

    None where they have no place: in a network whose config names no convolutions, or whose capsules all see
    the whole image. DeepCaps has two, of its last two cells.
    """
    config: Any = getattr(network, "config", None)
    stages = getattr(config, "stages", None)
    if not stages:
        return ()
    depths = (len(stages) - 1, len(stages)) if isinstance(network, DeepCaps) else (len(stages),)
    sides = [map_sizes(config.image_size, stages)[depth - 1] for depth in depths]
    types, rest = divmod(in_caps, sum(side**2 for side in sides))
    if rest or max(sides) == 1:
        return ()
    return tuple(
        CapsuleMap((side, side, types), receptive_field(config.image_size, stages[:depth]))
        for side, depth in zip(sides, depths, strict=True)
    )


def evidence_maps(
    trace: LayerTrace, chosen: Int[Tensor, " batch"], maps: Sequence[CapsuleMap]
) -> list[Float[Tensor, "batch _rows _columns"]]:
    """The saliency on the grid of each map."""
    assert trace.routed.coupling is not None
    counts = [each.capsules for each in maps]
    activations = torch.split(trace.children.activations.flatten(1), counts, dim=1)
    couplings = torch.split(trace.routed.coupling, counts, dim=1)
    return [
        saliency_map(activation, coupling, chosen, each.grid)
        for each, activation, coupling in zip(maps, activations, couplings, strict=True)
    ]


def contribution_maps(
    parts: Float[Tensor, "batch in_caps"], maps: Sequence[CapsuleMap]
) -> list[Float[Tensor, "batch _rows _columns"]]:
    """What speaks for the class on the grid of each map."""
    of_maps = torch.split(parts, [each.capsules for each in maps], dim=1)
    return [contribution_map(some, each.grid) for each, some in zip(maps, of_maps, strict=True)]


def evidence_on_image(
    trace: LayerTrace, chosen: Int[Tensor, " batch"], maps: Sequence[CapsuleMap], size: tuple[int, int]
) -> Float[Tensor, "batch height width"]:
    """The saliency of all maps on an image of `size`, each capsule where it looks, and summed."""
    return place_maps(evidence_maps(trace, chosen, maps), maps, size)


def contribution_on_image(
    parts: Float[Tensor, "batch in_caps"], maps: Sequence[CapsuleMap], size: tuple[int, int]
) -> Float[Tensor, "batch height width"]:
    """What speaks for the class on all maps, each capsule where it looks on the image, and summed."""
    return place_maps(contribution_maps(parts, maps), maps, size)


def place_maps(
    found: Sequence[Float[Tensor, "batch _rows _columns"]], maps: Sequence[CapsuleMap], size: tuple[int, int]
) -> Float[Tensor, "batch height width"]:
    """What lies on the grids of all maps, on an image of `size`: each capsule where it looks, and summed."""
    parts = [place_heat(each, size, where.field) for each, where in zip(found, maps, strict=True)]
    return torch.stack(parts).sum(0)
