"""Where on the image the capsules stand that vote for the classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from torchcaps.core import ImageSize, LayerTrace, UserError
from torchcaps.layers import ReceptiveField, map_sizes, receptive_field
from torchcaps.models import CapsuleGrid, Network

from .contribution import contribution_map
from .saliency import GridShape, place_heat, saliency_map


class CapsuleMap(NamedTuple):
    """A grid of capsules, and where each looks."""

    grid: GridShape
    field: ReceptiveField

    @property
    def capsules(self) -> int:
        """How many capsules there are."""
        height, width, types = self.grid
        return height * width * types


def fully_connected(layers: Sequence[LayerTrace]) -> tuple[LayerTrace, ...]:
    """The layers that a tree can be drawn of: all after the last convolutional one."""
    chain: list[LayerTrace] = []
    for trace in reversed(layers):
        if trace.routed.coupling is None or trace.routed.coupling.ndim != 3:
            break
        chain.insert(0, trace)
    if not chain:
        raise UserError("the network does not end in a fully connected capsule layer: it has no parse trees")
    return tuple(chain)


def through_layers(layers: Sequence[LayerTrace]) -> LayerTrace:
    """The children of the first of some fully connected layers, with their couplings to the classes.

    The coupling of a child to a class is the sum over all paths between them of the product of the couplings
    on the path; with one layer it is that layer's own.
    """
    couplings = [trace.routed.coupling for trace in layers]
    coupling = couplings[0]
    for above in couplings[1:]:
        coupling = coupling @ above  # type: ignore[operator]
    return LayerTrace(layers[0].children, layers[-1].routed._replace(coupling=coupling))


def capsule_maps(network: nn.Module) -> tuple[CapsuleMap, ...]:
    """The maps on which the children of the first fully connected layer stand, in their order.

    The family declares them, in its method `capsule_grids`. None where every capsule sees the whole image.
    """
    if not isinstance(network, Network):
        return ()
    found = tuple(_place(grid, network.config.image_size) for grid in network.capsule_grids())
    has_places = any(each.grid[:2] != (1, 1) for each in found)
    return found if has_places else ()


def _place(grid: CapsuleGrid, image_size: ImageSize) -> CapsuleMap:
    height, width = map_sizes(image_size, grid.stages)[-1]
    return CapsuleMap((height, width, grid.types), receptive_field(image_size, grid.stages))


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
    """The positive contributions to the class on the grid of each map."""
    of_maps = torch.split(parts, [each.capsules for each in maps], dim=1)
    return [contribution_map(some, each.grid) for each, some in zip(maps, of_maps, strict=True)]


def evidence_on_image(
    trace: LayerTrace, chosen: Int[Tensor, " batch"], maps: Sequence[CapsuleMap], size: tuple[int, int]
) -> Float[Tensor, "batch height width"]:
    """The saliency of all maps on an image of `size`, each capsule where it looks, and summed."""
    return place_maps(evidence_maps(trace, chosen, maps), maps, size)


def place_maps(
    found: Sequence[Float[Tensor, "batch _rows _columns"]], maps: Sequence[CapsuleMap], size: tuple[int, int]
) -> Float[Tensor, "batch height width"]:
    """Values on the grids of all maps, put on an image of `size`: each capsule where it looks, and summed."""
    parts = [place_heat(each, size, where.field) for each, where in zip(found, maps, strict=True)]
    return torch.stack(parts).sum(0)
