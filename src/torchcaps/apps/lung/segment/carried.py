"""Which capsules of the deepest level carry a nodule, on its slice."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import nn

from torchcaps.core import Plain
from torchcaps.models import ShrinksAndGrows
from torchcaps.parse import (
    Carriers,
    Silenced,
    carriers,
    carriers_obstacle,
    carriers_on_image,
    silence_carriers,
)

from ..volume import Volume, window
from .pieces import FoundNodule, NodulesFound
from .slice_network import SliceNetwork

_SIDE = 128  # pixels around the nodule that are looked at, as in training
_LEAST_CARRIED = 0.01  # a smaller share of the length carries nothing that could be seen


@dataclass(frozen=True, eq=False)
class Carried:
    """Where in the slice the capsules are that carry a nodule, and what it loses without them."""

    nodule: int
    heat: Float[np.ndarray, "rows columns"]
    through_deepest: float
    hardly_routes: bool
    silenced: Silenced

    @property
    def title(self) -> str:
        """Above the overlay."""
        if self.hardly_routes:
            return "capsules of the deepest level (couplings nearly even)"
        if self.through_deepest < _LEAST_CARRIED or self.silenced.fall <= self.silenced.random_fall:
            return "capsules of the deepest level (they hardly carry it)"
        return "capsules of the deepest level that carry it"

    @property
    def words(self) -> str:
        """What was checked."""
        found = self.silenced
        return (
            f"{self.through_deepest:z.0%} of its length comes through the deepest level. Without the "
            f"strongest {found.capsules} of {found.reachable} capsules there the activation falls by "
            f"{found.fall:z.3f} of {found.before:.3f}, without as many random ones by "
            f"{found.random_fall:z.3f}."
        )

    def as_json(self) -> Plain:
        """As plain data, without the map."""
        return {
            "nodule": self.nodule,
            "through_deepest": self.through_deepest,
            "hardly_routes": self.hardly_routes,
            **self.silenced._asdict(),
            "fall": self.silenced.fall,
            "random_fall": self.silenced.random_fall,
        }


def nodule_carriers(
    model: nn.Module, network: SliceNetwork, volume: Volume, found: NodulesFound, nodule: FoundNodule
) -> Carried | None:
    """The carriers of a nodule in the slice that has most of it; None for a network without capsules."""
    if carriers_obstacle(model) is not None:
        return None
    assert isinstance(model, ShrinksAndGrows)
    rows, columns = (
        _around(at, side, network.step)
        for at, side in zip((nodule.row, nodule.column), volume.hounsfield.shape[1:], strict=True)
    )
    marked = torch.from_numpy(found.labels[nodule.slice, rows, columns] == nodule.number)
    grey = torch.from_numpy(window(volume.hounsfield[nodule.slice, rows, columns]))
    if not marked.any() or min(marked.shape) < network.step:
        return None
    inputs, marked = network.prepare(grey[None, None].to(network.device)), marked[None].to(network.device)
    with torch.no_grad():
        layers = model(inputs, return_routing=True).layers
    carved: Carriers = carriers(model, layers, marked)
    heat = np.zeros(volume.hounsfield.shape[1:], np.float32)
    placed = carriers_on_image(model, carved.parts, (marked.shape[1], marked.shape[2]))
    heat[rows, columns] = placed[0].float().cpu().numpy()
    return Carried(
        nodule=nodule.number,
        heat=heat,
        through_deepest=float(carved.through_deepest),
        hardly_routes=carved.hardly_routes,
        silenced=silence_carriers(model, inputs, marked, carved.parts),
    )


def _around(at: float, side: int, step: int) -> slice:
    """A window around a place that stays inside, its length a multiple of `step`."""
    length = min(_SIDE, side) // step * step
    first = min(max(0, round(at - length / 2)), side - length)
    return slice(first, first + length)
