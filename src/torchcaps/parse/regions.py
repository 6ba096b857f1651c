"""Which region of the image each capsule of a tree answers for, from the first layer to the classes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from einops import reduce
from jaxtyping import Float, Int64
from torch import Tensor, einsum, nn

from torchcaps.core import LayerTrace
from torchcaps.models import Network

from .places import CapsuleMap, capsule_maps
from .saliency import place_map
from .whole_map import places_of_map, split_over_map


@dataclass(frozen=True)
class Regions:
    """Where the children of the first fully connected layer look, on a batch of images.

    Attributes:
        maps: The grids on which the capsules stand; or the one map that each capsule reads whole.
        shares: How each capsule spreads over the places of that map, where it reads it whole.
    """

    maps: tuple[CapsuleMap, ...]
    shares: Float[Tensor, "batch capsules rows columns"] | None = None

    @property
    def types(self) -> Int64[Tensor, " capsules"]:
        """The type of each capsule: capsules of one type share their filters."""
        if self.shares is not None:
            return torch.arange(self.shares.shape[1])
        first, found = 0, []
        for each in self.maps:
            rows, columns, types = each.grid
            found.append(first + torch.arange(types).repeat(rows * columns))
            first += types
        return torch.cat(found)

    def on_image(
        self, weights: Float[Tensor, "batch capsules"], size: tuple[int, int]
    ) -> Float[Tensor, "batch height width"]:
        """Weights on an image of `size`, each capsule where it looks; mean over types, zero around."""
        return self.place(self._on_grids(weights), size)

    def flat(self, like: Float[Tensor, "batch height width"]) -> Float[Tensor, "batch height width"]:
        """A map without any preference: one at all places at which some capsule looks."""
        ones = [like.new_ones(len(like), *each.grid[:2]) for each in self.maps]
        return self.place(ones, (like.shape[1], like.shape[2]))

    def place(
        self, values: Sequence[Float[Tensor, "batch _rows _columns"]], size: tuple[int, int]
    ) -> Float[Tensor, "batch height width"]:
        """Values on the grids of all maps, put on an image of `size` and summed; zero around."""
        placed = [place_map(grid, size, each.field) for grid, each in zip(values, self.maps, strict=True)]
        return torch.stack(placed).sum(0)

    def alone(self, sample: int) -> Regions:
        """The regions of one image."""
        return self if self.shares is None else Regions(self.maps, self.shares[sample : sample + 1])

    def _on_grids(self, weights: Tensor) -> list[Tensor]:
        if self.shares is not None:
            return [einsum("bi,bihw->bhw", weights, self.shares.expand(len(weights), -1, -1, -1))]
        parts = torch.split(weights, [each.capsules for each in self.maps], dim=1)
        return [
            reduce(part, "b (h w t) -> b h w", "mean", h=each.grid[0], w=each.grid[1], t=each.grid[2])
            for part, each in zip(parts, self.maps, strict=True)
        ]


def find_regions(network: nn.Module, inputs: Float[Tensor, "batch channels height width"]) -> Regions | None:
    """Where capsules look on these images; None where neither a grid nor a map says it.

    Capsules on a grid look at the centre of their receptive field. Those that each read a whole map look at
    the places of it that make their pose, on every image anew.
    """
    maps = capsule_maps(network)
    if maps:
        return Regions(maps)
    reader = network.map_reader() if isinstance(network, Network) else None
    if reader is None:
        return None
    assert isinstance(network, Network)
    return Regions((places_of_map(network, reader),), split_over_map(network, reader, inputs).shares)


def weights_of_levels(layers: Sequence[LayerTrace], sample: int) -> list[Float[Tensor, "_capsules children"]]:
    """What each capsule of each layer is made of, for one image: the weights of the first children.

    The first entry is of the children themselves, the last of the classes. A weight is the activation of the
    child times its coupling, which through several layers is the sum over all paths, as in `through_layers`.
    """
    activations = layers[0].children.activations[sample].flatten()
    found = [torch.eye(len(activations), dtype=activations.dtype, device=activations.device)]
    path: Tensor | None = None
    for trace in layers:
        assert trace.routed.coupling is not None
        coupling = trace.routed.coupling[sample].to(activations.dtype)
        path = coupling if path is None else path @ coupling
        found.append((activations[:, None] * path).T)
    return found
