"""Square regions around nodules: what networks learn from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import UInt8
from numpy.typing import NDArray

from torchcaps.core import digest_of

from ..nodules import Nodule
from ..volume import Volume, grey_bytes

SIDE = 128  # pixels of a region
LEAST_PIXELS = 8  # of a nodule in a slice
_AWAY = 24  # pixels; with nodules in the middle, a network would learn where that is


@dataclass(frozen=True, eq=False)
class Region:
    """A square of a slice, its mask of 0 and 1, and (slice, row, column) of its first pixel."""

    image: UInt8[np.ndarray, "side side"]
    mask: UInt8[np.ndarray, "side side"]
    slice: int
    row: int
    column: int


@dataclass(frozen=True, eq=False)
class Cut:
    """A region of a nodule, or one that shows none.

    Attributes:
        nodule: Its number in the patient, from 0; None in a region without one.
        readers: How many marked it.
        diameter_mm: Of the ball of its volume; None where the source has no spacing.
        spacing: Millimetres between slices, rows and columns.
        malignancy: Median score of the readers.
    """

    region: Region
    nodule: int | None
    readers: int
    diameter_mm: float | None
    spacing: tuple[float, float, float] | None
    malignancy: float | None = None

    @classmethod
    def without_nodule(cls, region: Region, spacing: tuple[float, float, float] | None) -> Cut:
        """A region that shows none."""
        return cls(region, nodule=None, readers=0, diameter_mm=None, spacing=spacing)


def cut_regions(
    volume: Volume, nodule: Nodule, everything: NDArray[np.bool_], *, key: str
) -> Iterator[Region]:
    """A region for each slice of a nodule that shows at least 8 pixels of it.

    The nodule lies up to 24 of 128 pixels from the middle, by a draw that depends on `key`. A region that
    would leave the slice is moved inside; a slice smaller than the region is padded with air.

    Args:
        volume: The volume.
        nodule: One of its nodules.
        everything: The voxels of all its nodules: a region may show several.
        key: Patient and nodule.
    """
    random = random_of(key)
    first = int(nodule.voxels.corner[0])
    for offset, plane in enumerate(nodule.voxels.inside):
        away = draw_offset(random)
        if plane.sum() < LEAST_PIXELS:
            continue
        middle = np.argwhere(plane).mean(0) + nodule.voxels.corner[1:]
        row, column = first_pixel(middle + away, volume.hounsfield.shape[1:])
        yield grey_region(volume, everything, (first + offset, row, column))


def random_of(key: str) -> np.random.Generator:
    """Draws that depend on a text alone."""
    return np.random.default_rng(int.from_bytes(digest_of(key), "little"))


def grey_region(volume: Volume, everything: NDArray[np.bool_], place: tuple[int, int, int]) -> Region:
    """The square whose first pixel is at `place`, in grey values of 0 to 255, with its mask."""
    number, row, column = place
    return Region(
        grey_bytes(cut(volume.hounsfield[number], row, column)),
        cut(everything[number].astype(np.uint8), row, column),
        number,
        row,
        column,
    )


def draw_offset(random: np.random.Generator) -> NDArray[np.int64]:
    """Rows and columns by which the middle of a region lies beside its nodule."""
    return random.integers(-_AWAY, _AWAY + 1, 2)


def first_pixel(middle: NDArray[np.float64], shape: tuple[int, ...]) -> tuple[int, int]:
    """Row and column of a square around `middle`, moved inside; 0 where the slice is smaller than it."""
    row, column = (
        int(np.clip(round(at - SIDE / 2), 0, max(length - SIDE, 0)))
        for at, length in zip(middle, shape, strict=True)
    )
    return row, column


def cut(plane: NDArray[np.generic], row: int, column: int) -> NDArray[np.generic]:
    """A square of a slice; what lies beyond the slice is air (-1000), and 0 in a mask."""
    part = plane[row : row + SIDE, column : column + SIDE]
    missing = [(0, SIDE - length) for length in part.shape]
    beyond = 0 if plane.dtype == np.uint8 else -1000
    return np.pad(part, missing, constant_values=beyond)
