"""A folder of season stacks as places to recognise: each is seen on all dates, from slightly aside."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from torch import Tensor

from torchcaps.core import MissingDataError, UserError, build_dataclass, generator
from torchcaps.storage import read_json, write_json

from ..api import Frame, Split
from ..examples import PlacedImages
from ..split import Parts, members
from .crops import MapImages, Views
from .stack import SeasonStack, load_stack, save_stack

_PLAN = "places.json"
_SIDE = 100  # pixels of a crop where the network does not say
_TEST_SHARE = 0.2
_DRAWS = 200  # of a place, until all dates show the ground around it


@dataclass(frozen=True, kw_only=True)
class PlacePlan:
    """How places and their views are drawn; offset and rotation are by default those of the thesis.

    A place is a point of the map with a heading. Its views go through the dates of the map in turn.

    Attributes:
        places: In all maps together, for training and validation.
        views: Of each place.
        offset: Farthest distance in metres of a view from its place.
        rotation: Standard deviation in degrees of its heading.
        seed: Of all draws.
    """

    places: int = 2250
    views: int = 20
    offset: float = 35.0
    rotation: float = 6.0
    seed: int = 0

    def __post_init__(self) -> None:
        if self.places < 2 or self.views < 2:
            raise UserError(
                f"at least 2 places with 2 views each are needed, not {self.places} with {self.views}"
            )
        if not (self.offset >= 0 and self.rotation >= 0):
            raise UserError(
                f"offset and rotation of views must not be negative, got {self.offset} m and {self.rotation}°"
            )


class PlacedCrops(PlacedImages):
    """Crops of maps; validation looks at ground that no training crop shows."""

    def split_indices(self, fraction: float, seed: int) -> Parts:
        """Whole places; those of the eastern part of each map validate."""
        del seed
        images = self.images
        assert isinstance(images, MapImages)
        reach = _half_diagonal(images.side)
        parts = [
            self._split_map(number, fraction, reach) for number in torch.unique(images.views.maps).tolist()
        ]
        train, validation = (torch.cat(list(part)) for part in zip(*parts, strict=True))
        if not len(train) or not len(validation):
            raise UserError(
                f"no place is left to {'validate' if len(train) else 'train'}, because validation crops of "
                f"{images.side} pixels must not show ground of training crops; take more places, larger "
                "maps, a smaller model.image_size, or another data.validation"
            )
        return members(self.places, train), members(self.places, validation)

    def _split_map(self, number: int, fraction: float, reach: float) -> tuple[Tensor, Tensor]:
        views: Views = self.images.views  # type: ignore[attr-defined]  # checked by the caller
        rows = views.maps == number
        places, column = self.places[rows], views.centres[rows, 0]
        border = torch.quantile(column.float(), 1 - fraction)
        found = torch.unique(places)
        not_west, not_east = places[column > border - 2 * reach], places[column < border]
        return found[~torch.isin(found, not_west)], found[~torch.isin(found, not_east)]


@dataclass(frozen=True)
class PlaceContent:
    """What lies in a folder of season stacks."""

    stacks: tuple[SeasonStack, ...]
    plan: PlacePlan
    side: int
    validation: None = None  # crops of training ground are split by place, see `PlacedCrops`

    @property
    def classes(self) -> tuple[str, ...]:
        """Names of the places, those for testing last."""
        return tuple(f"place {number}" for number in range(self.plan.places + self._tested))

    @property
    def _tested(self) -> int:
        return max(2, round(self.plan.places * _TEST_SHARE))

    @property
    def channels(self) -> int:
        """Channels of all images."""
        return int(self.stacks[0].images.shape[1])

    def count(self, split: Split) -> int:
        """Images of a split."""
        return self.plan.views * (self.plan.places if split == "train" else self._tested)

    def sample(self, most: int) -> list[Tensor]:
        """Some training images."""
        images = self.examples("train").images
        step = -(-len(images) // most)
        return list(images[torch.arange(0, len(images), step)])

    def examples(self, split: Split) -> PlacedCrops:
        """All views of a split; the eastern fifth of each map is for testing."""
        count = self.plan.places if split == "train" else self._tested
        rng = generator(self.plan.seed, "places", split)
        shares = [stack.width * stack.height for stack in self.stacks]
        maps = torch.multinomial(torch.tensor(shares, dtype=torch.float64), count, True, generator=rng)
        parts = [
            self._places(number, int((maps == number).sum()), split, rng) for number in torch.unique(maps)
        ]
        views = Views(*(torch.cat(list(part)) for part in zip(*map(_columns, parts), strict=True)))
        first = 0 if split == "train" else self.plan.places
        places = first + torch.arange(count).repeat_interleave(self.plan.views)
        pixels = [torch.from_numpy(stack.images) for stack in self.stacks]
        return PlacedCrops(MapImages(pixels, views, self.side), places, self.classes)

    def _places(self, number: Tensor, count: int, split: Split, rng: torch.Generator) -> Views:
        stack, plan = self.stacks[int(number)], self.plan
        low, high = self._room(stack, split)
        middles = self._draw(stack, count, low, high, rng)
        headings = 2 * math.pi * torch.rand(count, generator=rng)
        shape = (count, plan.views)
        distance = plan.offset / stack.pixel * torch.rand(shape, generator=rng)
        angle = 2 * math.pi * torch.rand(shape, generator=rng)
        offsets = torch.stack([distance * angle.cos(), distance * angle.sin()], dim=-1)
        turns = math.radians(plan.rotation) * torch.randn(shape, generator=rng)
        dates = torch.arange(plan.views).expand(shape) % len(stack.names)
        return Views(
            number.expand(count * plan.views),
            dates.flatten(),
            (middles[:, None] + offsets).flatten(0, 1),
            (headings[:, None] + turns).flatten(),
        )

    def _draw(
        self, stack: SeasonStack, count: int, low: Tensor, high: Tensor, rng: torch.Generator
    ) -> Tensor:
        """Columns and rows of places, drawn again where the dates of a map show no ground around them."""
        middles = low + torch.rand(count, 2, generator=rng) * (high - low)
        reach, blank = _half_diagonal(self.side), torch.arange(count)
        for _ in range(_DRAWS):
            blank = blank[~torch.from_numpy(stack.shows(middles[blank].numpy(), reach))]
            if not len(blank):
                return middles
            middles[blank] = low + torch.rand(len(blank), 2, generator=rng) * (high - low)
        raise UserError(f"all dates of a map of {stack.width}x{stack.height} pixels show too little ground")

    def _room(self, stack: SeasonStack, split: Split) -> tuple[Tensor, Tensor]:
        """The first and last column and row of a place, such that all views stay on the part of the map."""
        reach = _half_diagonal(self.side) + self.plan.offset / stack.pixel
        border = (1 - _TEST_SHARE) * stack.width
        west, east = (0.0, border) if split == "train" else (border, float(stack.width))
        low, high = torch.tensor([west + reach, reach]), torch.tensor([east - reach, stack.height - reach])
        if (high <= low).any():
            raise UserError(
                f"a map of {stack.width}x{stack.height} pixels is too small for crops of {self.side} pixels "
                f"and the {'eastern fifth' if split == 'test' else 'rest'} to be kept apart: take a larger "
                "map, a smaller model.image_size, or a smaller offset"
            )
        return low, high


def _columns(views: Views) -> tuple[Tensor, ...]:
    return views.maps, views.dates, views.centres, views.headings


def _half_diagonal(side: int) -> float:
    return side / math.sqrt(2)


def open_map_folder(root: Path, frame: Frame | None = None) -> PlaceContent:
    """A folder with one `.npz` for each season stack, and `places.json` where other numbers are wanted."""
    files = sorted(root.glob("*.npz"))
    if not files:
        raise MissingDataError(f"{root} has no season stack (.npz); make them with torchcaps uav train")
    if frame is not None and frame.height != frame.width:
        raise UserError(f"crops of maps are square, not {frame.height}x{frame.width}")
    stacks = tuple(map(load_stack, files))
    if len({stack.pixel for stack in stacks}) > 1:
        raise UserError(f"the season stacks in {root} have pixels of different sizes: write them anew")
    path = root / _PLAN
    plan = build_dataclass(PlacePlan, read_json(path), str(path)) if path.is_file() else PlacePlan()
    return PlaceContent(stacks, plan, frame.height if frame else _SIDE)


def write_map_folder(root: Path, stacks: Sequence[SeasonStack], plan: PlacePlan) -> None:
    """Write what `open_map_folder` reads."""
    for number, stack in enumerate(stacks):
        save_stack(root / f"map-{number}.npz", stack)
    write_json(root / _PLAN, asdict(plan))
