"""How far descriptors of the same and of other places are from each other, on ground that did not train."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from torchcaps.core import MissingDataError, UserError, build_dataclass, require_choice
from torchcaps.data import SeasonStack, sample_crops
from torchcaps.storage import read_json, write_json

from ..filter import Likelihood, bayesian_likelihood, linear_likelihood, ratio_likelihood
from .describe import Describer

_FILE = "matching.json"
_EAST_SHARE = 0.2  # of each map, in which pairs are taken
_PAIRS = 500  # of each map
_BATCH = 100
_DRAWS = 200  # of a place, until all dates show the ground around it
LIKELIHOODS = ("bayesian", "linear", "ratio")
_EXPONENT = 0.7  # of a ratio, see the experiment beyond:uav-calibration


@dataclass(frozen=True)
class Matching:
    """What localization must know of a descriptor.

    Attributes:
        pixel: Metres per pixel of its crops.
        side: Pixels of a crop.
        same: Distances of descriptors of one place on two dates.
        other: Distances of descriptors of two places.
    """

    pixel: float
    side: int
    same: tuple[float, ...]
    other: tuple[float, ...]

    @property
    def metres(self) -> float:
        """Side of the ground that a crop shows."""
        return self.pixel * self.side

    def likelihood(self, name: str, exponent: float = _EXPONENT) -> Likelihood:
        """The weight of each distance: `bayesian`, `linear`, or `ratio` to the power of an exponent."""
        require_choice("likelihood", name, LIKELIHOODS)
        if name == "linear":
            return linear_likelihood()
        same, other = np.array(self.same), np.array(self.other)
        if name == "ratio":
            return ratio_likelihood(same, other, exponent)
        return bayesian_likelihood(same, other)

    def check_metres(self, metres: float) -> None:
        """Raise where a map was compiled of crops of other metres; handmade descriptors share a name."""
        if not math.isclose(metres, self.metres, rel_tol=1e-6):
            raise UserError(
                f"the map was compiled of crops of {metres:g} m, but those of the run are of {self.metres:g} "
                "m: compile it anew, or name the run that it was compiled with"
            )

    def save(self, folder: Path) -> None:
        """Write it beside the weights of a run."""
        write_json(folder / _FILE, asdict(self))


def load_matching(folder: Path) -> Matching:
    """What the run in a folder knows of its descriptors."""
    path = folder / _FILE
    if not path.is_file():
        raise MissingDataError(
            f"{folder} has no {_FILE}, which torchcaps uav train writes at its end; a training that was "
            "stopped goes on with --resume, and runs of other commands have none"
        )
    return build_dataclass(Matching, read_json(path), str(path))


@dataclass(frozen=True)
class Pairing:
    """A voxel of the filter, within which two views of one place lie; by default that of the thesis."""

    cell: float = 10.0
    heading_step: float = math.radians(6)


def measure_matching(
    describer: Describer, stacks: Sequence[SeasonStack], pairing: Pairing | None = None
) -> Matching:
    """Compare places of the maps with themselves on another date, and with other places."""
    pairing = pairing or Pairing()
    same, other = zip(*(_measure(describer, stack, pairing) for stack in stacks), strict=True)
    rounded = [tuple(np.concatenate(part).round(5).tolist()) for part in (same, other)]
    return Matching(stacks[0].pixel, describer.side, *rounded)


def _measure(
    describer: Describer, stack: SeasonStack, pairing: Pairing
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    rng = np.random.default_rng(0)
    places = _places(stack, describer.side, rng)
    shift = rng.uniform(-0.5, 0.5, (_PAIRS, 3)) * [pairing.cell, pairing.cell, pairing.heading_step]
    first = rng.integers(len(stack.names), size=_PAIRS)
    second = (first + rng.integers(1, max(len(stack.names), 2), size=_PAIRS)) % len(stack.names)
    of_map = describe_places(describer, stack, places, first)
    seen = describe_places(describer, stack, places + shift, second)
    apart = np.hypot(*(places - np.roll(places, 1, axis=0))[:, :2].T) > 2 * pairing.cell
    return _distances(of_map, seen), _distances(of_map, np.roll(seen, 1, axis=0))[apart]


def _places(stack: SeasonStack, side: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Places in metres with headings, whose crops stay on the eastern share of the map."""
    reach = (side / math.sqrt(2) + 1) * stack.pixel
    east = stack.west + stack.width * stack.pixel
    first = east - _EAST_SHARE * stack.width * stack.pixel
    low, high = np.array([first + reach, stack.south + reach]), np.array([east - reach, stack.north - reach])
    if (high <= low).any():
        raise UserError(
            f"the eastern {_EAST_SHARE:.0%} of the map has no room for crops of {side} pixels, on "
            "which matches are measured: take a larger map or smaller crops (--side of a baseline, "
            "model.image_size of a recipe)"
        )
    places = rng.uniform(low, high, (_PAIRS, 2))
    blank = np.arange(_PAIRS)
    for _ in range(_DRAWS):
        blank = blank[~stack.shows(stack.centres_of(*places[blank].T), reach / stack.pixel)]
        if not len(blank):
            break
        places[blank] = rng.uniform(low, high, (len(blank), 2))
    else:
        raise UserError(
            f"all dates show too little of the ground in the eastern {_EAST_SHARE:.0%} of the map"
        )
    return np.concatenate([places, rng.uniform(0, 2 * math.pi, (_PAIRS, 1))], axis=1)


def describe_places(
    describer: Describer, stack: SeasonStack, places: NDArray[np.float64], dates: NDArray[np.int64]
) -> NDArray[np.float32]:
    """Descriptors of the map at places (x, y, heading) on given dates."""
    images = torch.from_numpy(stack.images).to(describer.device)
    centres = torch.from_numpy(stack.centres_of(places[:, 0], places[:, 1]))
    headings = torch.from_numpy(places[:, 2].astype(np.float32))
    parts = (part.to(describer.device) for part in (torch.from_numpy(dates), centres, headings))
    found = [
        describer(sample_crops(images, date, centre, heading, describer.side))
        for date, centre, heading in zip(*(torch.split(part, _BATCH) for part in parts), strict=True)
    ]
    return torch.cat(found).cpu().numpy()


def _distances(one: NDArray[np.float32], two: NDArray[np.float32]) -> NDArray[np.float64]:
    return np.linalg.norm(one.astype(np.float64) - two, axis=1).clip(0, 2)
