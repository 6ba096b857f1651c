"""Where descriptors learn and where flights are flown: one map, apart by place and by date."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np

from torchcaps.apps.uav import Terrain, open_maps
from torchcaps.core import MissingDataError
from torchcaps.data import SeasonStack, load_stack, resolve_data_dir

from ..records import Budget

Ground = Literal["naip", "naip held out", "terrain", "sentinel", "sentinel haze"]
HOMES: dict[Ground, Ground] = {"sentinel haze": "sentinel"}  # grounds that share the map of another
_TRAINED_SHARE = 0.64  # of the width, from the west
_NAIP_MAP = "20190904"
_NAIP_SEEN = ("20170827", "20180716", "20200831")
_TERRAIN_SEEN = ("spring", "autumn")
_SENTINEL_MAP, _SENTINEL_CLEAR, _SENTINEL_HAZE = "20220614", "20221105", "20220902"
_SENTINEL_PIXEL = 20.0
_SENTINEL_ROWS = 0.25  # of the height, from the north
APART = {
    "naip": "Networks learn on the western 64 % of the map and on the dates 2009, 2010, 2012, 2014, 2015 and "
    "2016. Flights are over the eastern 36 %: the map is of 4 September 2019, the camera sees 27 August "
    "2017, 16 July 2018 or 31 August 2020. No pixel and no date is in both.",
    "terrain": "Networks learn on one drawn terrain in four seasons, flights are over another one: the map "
    "is of summer, the camera sees spring or autumn.",
    "sentinel": "Flights are over the eastern 36 % and northern quarter of 24 x 24 km of Rondonia, seen by "
    "Sentinel-2, 8.6 x 6 km: the map is of 14 June 2022, the camera sees 5 November or, through haze, 2 "
    "September. The network of that ground learns on the western 64 % on the two clear dates: no pixel is in "
    "both, the clear dates are.",
}


@dataclass(frozen=True)
class Scale:
    """How finely a budget looks.

    Attributes:
        pixel: Metres.
        cell: Side of a cell of the filter in metres.
        headings: Parts of the circle.
        flights: Of each run.
        updates: Of each flight.
        step: Metres between updates.
        places: To learn in an epoch.
        views: Of each place.
        converged: Spread of a belief in metres below which it counts, and error at the end below which a
            converged flight was found.
    """

    pixel: float
    cell: float
    headings: int
    flights: int
    updates: int
    step: float
    places: int
    views: int
    converged: float = 100.0


SCALES: dict[Budget, Scale] = {
    "smoke": Scale(pixel=20.0, cell=80.0, headings=6, flights=2, updates=5, step=50.0, places=24, views=4),
    "quick": Scale(
        pixel=10.0, cell=40.0, headings=24, flights=24, updates=50, step=160.0, places=600, views=12
    ),
    "full": Scale(
        pixel=5.0, cell=20.0, headings=36, flights=40, updates=50, step=160.0, places=2250, views=18
    ),
}


@dataclass(frozen=True, eq=False)
class World:
    """The ground to learn on with all its dates, that of the map with one, and what the camera may see."""

    learnt: SeasonStack
    mapped: SeasonStack
    seen: tuple[SeasonStack, ...]


def scale_of(ground: Ground, budget: Budget) -> Scale:
    """The scale of a budget; on Sentinel-2 all lengths grow with the pixels."""
    scale = SCALES[budget]
    if budget == "smoke" or not ground.startswith("sentinel"):
        return scale
    grown = _SENTINEL_PIXEL / scale.pixel
    lengths = {name: grown * getattr(scale, name) for name in ("pixel", "cell", "step", "converged")}
    return replace(scale, **lengths)


def make_world(ground: Ground, budget: Budget, data_dir: Path | None) -> World:
    """The ground of a budget; a smoke run draws a small one whatever was asked for."""
    if budget == "smoke":
        return _terrain(3600.0, 900.0, SCALES[budget].pixel)
    pixel = scale_of(ground, budget).pixel
    if ground == "terrain":
        return _terrain(6000.0, 3600.0, pixel)
    if ground in ("sentinel", "sentinel haze"):
        return _sentinel(data_dir, _SENTINEL_CLEAR if ground == "sentinel" else _SENTINEL_HAZE)
    world = _naip(pixel, data_dir)
    return _held_out(world) if ground == "naip held out" else world


def _terrain(width: float, height: float, pixel: float) -> World:
    learnt, flown = (Terrain(seed).draw(width, height, pixel) for seed in (1, 2))
    flown = flown.columns(0, round(flown.width / 2))
    return World(learnt, flown.dates(["summer"]), tuple(flown.dates([name]) for name in _TERRAIN_SEEN))


def _held_out(world: World) -> World:
    """Flights over the ground and on the dates of learning, the last of them as the map."""
    *seen, mapped = (world.learnt.dates([name]) for name in world.learnt.names)
    return World(world.learnt, mapped, tuple(seen))


def _sentinel(data_dir: Path | None, seen: str) -> World:
    stack = _read(
        resolve_data_dir(data_dir), "sentinel", "sentinel2_20LMR_*.tif", "the Sentinel-2 images of 20LMR"
    )
    mapped, clear, camera = (_named(stack, date) for date in (_SENTINEL_MAP, _SENTINEL_CLEAR, seen))
    border = round(_TRAINED_SHARE * stack.width)
    flown = stack.columns(border, stack.width).rows(0, round(_SENTINEL_ROWS * stack.height))
    learnt = stack.columns(0, border).dates([mapped, clear])
    return World(learnt, flown.dates([mapped]), (flown.dates([camera]),))


def _naip(pixel: float, data_dir: Path | None) -> World:
    folder = resolve_data_dir(data_dir)
    stack = coarsened(_read(folder, "naip", "naip_*.tif", "the NAIP images of m_4709963_se at 5 m"), pixel)
    border = round(_TRAINED_SHARE * stack.width)
    flown = stack.columns(border, stack.width)
    tested = (_NAIP_MAP, *_NAIP_SEEN)
    learnt = [name for name in stack.names if not name.endswith(tested)]
    mapped, *seen = (flown.dates([_named(flown, ending)]) for ending in tested)
    return World(stack.columns(0, border).dates(learnt), mapped, tuple(seen))


def _read(folder: Path, name: str, pattern: str, words: str) -> SeasonStack:
    """The stack in `<name>.npz`, or that of the GeoTIFFs in `aerial`."""
    if (folder / f"{name}.npz").is_file():
        return load_stack(folder / f"{name}.npz")
    files = sorted((folder / "aerial").glob(pattern))
    if not files:
        raise MissingDataError(
            f"no maps at {folder}: put {words} there as aerial/{pattern}, or all of "
            f"them as {name}.npz (torchcaps uav stack)"
        )
    return open_maps(files)


def _named(stack: SeasonStack, ending: str) -> str:
    for name in stack.names:
        if name.endswith(ending):
            return name
    raise MissingDataError(f"the maps have no date {ending}; they have {', '.join(stack.names)}")


def coarsened(stack: SeasonStack, pixel: float) -> SeasonStack:
    """The stack with larger pixels, each the mean of several."""
    factor = round(pixel / stack.pixel)
    if factor <= 1:
        return stack
    height, width = (side // factor * factor for side in (stack.height, stack.width))
    shape = (len(stack.names), 3, height // factor, factor, width // factor, factor)
    images = stack.images[:, :, :height, :width].reshape(shape).mean((3, 5)).round().astype(np.uint8)
    known = np.asarray(stack.known[:, :height, :width].reshape(shape[:1] + shape[2:]).all((2, 4)))
    return replace(stack, images=images, known=known, pixel=factor * stack.pixel)
