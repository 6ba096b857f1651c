"""Drawn views of places: each place is a pattern of coloured spots, seen in different light and offset."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from torchcaps.core import generator

from ..api import DATASETS, DatasetInfo, Split
from ..examples import PlacedImages

PLACES: dict[Split, int] = {"train": 40, "test": 12}
VIEWS = 8  # of each place
_SIDE = 32
_SPOTS = 6


def draw_places(split: Split) -> PlacedImages:
    """All views of the places of a split, place by place; those of the two splits are different places."""
    rng = generator(0, "synthetic places", split)
    count = PLACES[split]
    places = torch.arange(count).repeat_interleave(VIEWS)
    spots = torch.rand(count, _SPOTS, 6, generator=rng)[places]  # x, y, width, red, green, blue
    offsets = 0.2 * (torch.rand(len(places), 2, generator=rng) - 0.5)
    light = 0.6 + 0.8 * torch.rand(len(places), 3, 1, 1, generator=rng)
    images = light * _draw(spots, offsets) + 0.05 * torch.randn(len(places), 3, _SIDE, _SIDE, generator=rng)
    names = tuple(f"{split} {number}" for number in range(count))
    return PlacedImages((images.clamp(0, 1) * 255).round().to(torch.uint8), places, names)


def _draw(spots: Float[Tensor, "count spots 6"], offsets: Float[Tensor, "count 2"]) -> Tensor:
    axis = torch.linspace(0, 1, _SIDE)
    x, y = (spots[:, :, part] + offsets[:, None, part] for part in (0, 1))
    across = (axis - x[..., None]).square()[:, :, None]  # (count, spots, 1, column)
    down = (axis - y[..., None]).square()[..., None]
    width = 0.005 + 0.02 * spots[:, :, 2, None, None]
    ink = (-(across + down) / width).exp()
    return torch.einsum("ksyx,ksc->kcyx", ink, spots[:, :, 3:])


DATASETS.register("synthetic_places")(
    DatasetInfo(
        name="synthetic_places",
        title="drawn views of places in different light",
        channels=3,
        height=_SIDE,
        width=_SIDE,
        classes=tuple(f"train {number}" for number in range(PLACES["train"])),
        mean=(0.13, 0.13, 0.13),
        std=(0.2, 0.2, 0.2),
        num_train=PLACES["train"] * VIEWS,
        num_test=PLACES["test"] * VIEWS,
        licence="made by the library",
        reader=lambda _, split: draw_places(split),
        task="retrieval",
    )
)
