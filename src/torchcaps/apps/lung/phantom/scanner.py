"""The scanner: slices of a patient in Hounsfield units, with partial volume, blur and noise."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from numpy.typing import NDArray

from .nodule import Nodule
from .patient import Patient
from .vessels import paint_tubes

_AIR = -1000.0
_VESSEL = 35.0
_SCAR = -60.0
_BLUR = 0.7  # mm; of the scanner, beside the size of a pixel
_PLANES = 3  # across the thickness of a slice


@dataclass(frozen=True)
class Grid:
    """Pixels of one slice: where the first lies, in millimetres, how far apart they are, and how many."""

    top: float
    left: float
    height: float
    spacing: float
    shape: tuple[int, int]

    def points(self, rows: slice, columns: slice, height: float) -> Float[np.ndarray, "rows columns 3"]:
        """(left, posterior, superior) of a block of pixels."""
        y = self.top + self.spacing * np.arange(*rows.indices(self.shape[0]))
        x = self.left + self.spacing * np.arange(*columns.indices(self.shape[1]))
        across = np.broadcast_to(x, (len(y), len(x)))
        return np.stack([across, np.broadcast_to(y[:, None], across.shape), np.full_like(across, height)], -1)

    def block(self, low: NDArray[np.float64], high: NDArray[np.float64]) -> tuple[slice, slice] | None:
        """Rows and columns that cover a box between two points; None where it lies outside."""
        first = np.floor((low[[1, 0]] - (self.top, self.left)) / self.spacing).astype(int)
        last = np.ceil((high[[1, 0]] - (self.top, self.left)) / self.spacing).astype(int) + 1
        first, last = np.maximum(first, 0), np.minimum(last, self.shape)
        if (first >= last).any():
            return None
        return slice(first[0], last[0]), slice(first[1], last[1])


def pixels_near(nodule: Nodule, grid: Grid, height: float) -> tuple[slice, slice] | None:
    """Rows and columns of a plane in which something of a nodule may be; None where nothing is."""
    if abs(nodule.centre[2] - height) > nodule.reach:
        return None
    return grid.block(nodule.centre - nodule.reach, nodule.centre + nodule.reach)


def scan_slice(patient: Patient, grid: Grid, thickness: float) -> Float[np.ndarray, "rows columns"]:
    """A slice in Hounsfield units without noise: the mean of planes across its thickness."""
    offsets = (np.arange(_PLANES) + 0.5) / _PLANES - 0.5
    planes = [_plane(patient, grid, grid.height + thickness * offset) for offset in offsets]
    return np.mean(planes, axis=0)


def _plane(patient: Patient, grid: Grid, height: float) -> NDArray[np.float64]:
    everything = slice(0, grid.shape[0]), slice(0, grid.shape[1])
    width = grid.spacing + _BLUR
    image = np.full(grid.shape, _AIR)
    for depth, inside in patient.chest.layers(grid.points(*everything, height)):
        image += _share(depth, width) * (inside - image)
    for tubes, level in ((patient.vessels, _VESSEL), (patient.scars, _SCAR)):
        corner = grid.left, grid.top, height
        paint_tubes(image, tubes, level=level, corner=corner, spacing=grid.spacing, blur=width)
    for nodule in patient.nodules:
        _add_nodule(image, nodule, grid, height)
    return image


def _share(depth: NDArray[np.float64], width: float) -> NDArray[np.float64]:
    """How much of a pixel lies inside, from the depth of its middle."""
    return np.clip(0.5 - depth / width, 0, 1)


def _add_nodule(image: NDArray[np.float64], nodule: Nodule, grid: Grid, height: float) -> None:
    block = pixels_near(nodule, grid, height)
    if block is None:
        return
    depth = nodule.depth(grid.points(*block, height))
    width = grid.spacing + _BLUR + nodule.edge
    share = _share(depth, width)
    level = np.full_like(depth, nodule.hounsfield)
    if nodule.texture == "part-solid":
        core = _share(depth + 0.5 * nodule.radius, width)
        level = -600 + core * (nodule.hounsfield + 600)
    image[block] += share * np.maximum(level - image[block], 0)


def add_noise(
    image: Float[np.ndarray, "rows columns"], random: np.random.Generator, deviation: float
) -> Float[np.ndarray, "rows columns"]:
    """The image with noise that neighbours share, as a reconstruction kernel leaves it."""
    raw = random.normal(size=(image.shape[0] + 2, image.shape[1] + 2))
    smooth = (raw[:-2] + 2 * raw[1:-1] + raw[2:]) / 4
    smooth = (smooth[:, :-2] + 2 * smooth[:, 1:-1] + smooth[:, 2:]) / 4
    return image + deviation * smooth / (6 / 16)
