"""Drawn terrain with seasons: fields, forests, water, roads and buildings, for maps of any size.

Each value is a function of the seed and the place alone: a larger terrain continues a smaller one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from torchcaps.core import UserError
from torchcaps.data import SeasonStack

from .maps import write_geotiff

Array = NDArray[np.float64]
SEASONS = ("spring", "summer", "autumn", "winter")
_CRS = "EPSG:32633"
_WEST, _NORTH = 500_000.0, 5_000_000.0
_SHORE = 0.55
_FIELD_METRES, _ROAD_METRES = 160.0, 900.0  # usual side of a field, usual distance of roads
_ROWS = 256  # drawn at once

# colours (red, green, blue) of each season
_FIELDS = np.array(  # three crops
    [
        [(105, 125, 70), (140, 120, 90), (90, 140, 75)],
        [(200, 185, 100), (95, 135, 60), (170, 165, 90)],
        [(125, 100, 70), (160, 140, 95), (110, 110, 70)],
        [(228, 230, 235), (215, 217, 222), (222, 226, 232)],
    ]
)
_FOREST = np.array([(70, 95, 50), (45, 80, 40), (125, 90, 45), (115, 115, 110)])
_WATER = np.array([(55, 75, 90), (40, 65, 85), (50, 65, 75), (175, 190, 205)])
_ROAD = np.array([(150, 145, 140), (165, 160, 150), (140, 135, 130), (120, 118, 118)])
_ROOF = np.array([(160, 95, 80), (170, 90, 75), (155, 92, 80), (220, 215, 218)])


@dataclass(frozen=True)
class Terrain:
    """A terrain without end; `seed` says which."""

    seed: int = 0

    def draw(
        self, width: float, height: float, pixel: float = 1.0, seasons: tuple[str, ...] = SEASONS
    ) -> SeasonStack:
        """The terrain in all seasons, from its north-western corner; sides in metres."""
        unknown = set(seasons) - set(SEASONS)
        if unknown:
            raise UserError(f"a terrain has the seasons {', '.join(SEASONS)}, not {', '.join(unknown)}")
        counts = [side / pixel if pixel > 0 else 0.0 for side in (width, height)]
        if not all(0.5 < count < math.inf for count in counts):
            raise UserError(f"a terrain of {width} x {height} m has no pixel of {pixel} m")
        columns, rows = map(round, counts)
        images = np.empty((len(seasons), 3, rows, columns), np.uint8)
        x = (np.arange(columns, dtype=np.float64) + 0.5) * pixel
        for top in range(0, rows, _ROWS):
            y = (np.arange(top, min(top + _ROWS, rows), dtype=np.float64) + 0.5) * pixel
            self._draw_rows(images[:, :, top : top + len(y)], x, y, seasons)
        known = np.ones((len(seasons), rows, columns), bool)
        return SeasonStack(images, known, tuple(seasons), _WEST, _NORTH, pixel, _CRS)

    def _draw_rows(
        self, out: NDArray[np.uint8], across: Array, down: Array, seasons: tuple[str, ...]
    ) -> None:
        x, y = np.meshgrid(across, down)
        field, edge = self._cells(x, y, _FIELD_METRES, 1)
        _, road = self._cells(x, y, _ROAD_METRES, 2)
        wet = self._noise(x, y, 700.0, 3)
        forest = self._noise(x, y, 350.0, 4) + 0.35 * self._noise(x, y, 40.0, 5)
        leaves, grain = self._noise(x, y, 9.0, 6), self._noise(x, y, 3.0, 7)
        roof = self._roofs(x, y, road) & (wet <= _SHORE)
        for number, name in enumerate(seasons):
            season = SEASONS.index(name)
            crop = (field % 3 + self._hash(field, season, 8) * 2).astype(np.int64) % 3
            colour = _FIELDS[season][crop] * (0.85 + 0.3 * self._hash(field, 17, 9))[..., None]
            colour *= np.where(edge < 3, 0.8, 1.0)[..., None]
            colour = np.where(
                (forest > 0.25)[..., None], _FOREST[season] * (1 + 0.45 * leaves)[..., None], colour
            )
            colour = np.where((wet > _SHORE)[..., None], _WATER[season], colour)
            colour = np.where((road < 5)[..., None], _ROAD[season], colour)
            colour = np.where(roof[..., None], _ROOF[season], colour)
            colour = colour * (1 + 0.06 * grain)[..., None]
            out[number] = np.moveaxis(colour.clip(0, 255), -1, 0).round().astype(np.uint8)

    def _hash(self, x: NDArray[np.generic], y: NDArray[np.generic] | int, layer: int) -> Array:
        """A number in [0, 1) for each pair of whole numbers."""
        with np.errstate(over="ignore"):
            mixed = np.asarray(x, np.int64).astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
            mixed ^= np.asarray(y, np.int64).astype(np.uint64) * np.uint64(0xC2B2AE3D27D4EB4F)
            mixed += np.uint64((self.seed * 1_000_003 + layer * 7919) % 2**63)
            for _ in range(2):
                mixed ^= mixed >> np.uint64(29)
                mixed *= np.uint64(0xBF58476D1CE4E5B9)
                mixed ^= mixed >> np.uint64(32)
        return (mixed >> np.uint64(11)).astype(np.float64) / 2**53

    def _noise(self, x: Array, y: Array, metres: float, layer: int) -> Array:
        """Smooth numbers in [-1, 1] that change over so many metres."""
        across, down = x / metres, y / metres
        left, top = np.floor(across), np.floor(down)
        a, b = (part * part * (3 - 2 * part) for part in (across - left, down - top))
        corner = {(i, j): self._hash(left + i, top + j, layer) for i in (0, 1) for j in (0, 1)}
        upper = corner[0, 0] * (1 - a) + corner[1, 0] * a
        lower = corner[0, 1] * (1 - a) + corner[1, 1] * a
        return 2 * (upper * (1 - b) + lower * b) - 1

    def _cells(self, x: Array, y: Array, metres: float, layer: int) -> tuple[Array, Array]:
        """The nearest of scattered sites, as a number of its own, and the metres to its border."""
        left, top = np.floor(x / metres), np.floor(y / metres)
        nearest, second = np.full_like(x, np.inf), np.full_like(x, np.inf)
        owner = np.zeros_like(x)
        for i in (-1, 0, 1):
            for j in (-1, 0, 1):
                column, row = left + i, top + j
                east = (column + 0.1 + 0.8 * self._hash(column, row, 10 * layer)) * metres
                south = (row + 0.1 + 0.8 * self._hash(column, row, 10 * layer + 1)) * metres
                distance = np.hypot(x - east, y - south)
                is_nearer = distance < nearest
                second = np.where(is_nearer, nearest, np.minimum(second, distance))
                owner = np.where(is_nearer, np.floor(self._hash(column, row, 10 * layer + 2) * 1e9), owner)
                nearest = np.minimum(nearest, distance)
        return owner, (second - nearest) / 2

    def _roofs(self, x: Array, y: Array, road: Array) -> NDArray[np.bool_]:
        """Houses on a lattice of 30 m where a road is near."""
        column, row = np.floor(x / 30), np.floor(y / 30)
        wide, long = 5 + 5 * self._hash(column, row, 91), 5 + 8 * self._hash(column, row, 92)
        near = (np.abs(x - 30 * column - 15) < wide) & (np.abs(y - 30 * row - 15) < long)
        is_built = self._hash(column, row, 93) < 0.35
        return near & is_built & (road > 10) & (road < 55)


def write_seasons(stack: SeasonStack, folder: Path) -> list[Path]:
    """Each date of a stack as a GeoTIFF of its name."""
    corner = (stack.west, stack.north, stack.pixel)
    files = [folder / f"{name}.tif" for name in stack.names]
    for file, image in zip(files, stack.images, strict=True):
        write_geotiff(file, image, corner, stack.crs)
    return files
