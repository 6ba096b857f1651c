"""Regions without a nodule, of what may be taken for one: vessels, scars and walls."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from ..segment import CELL, lung_field
from ..volume import Volume
from .regions import Region, draw_offset, first_pixel, grey_region, random_of

_REACH = 2  # cells from lung tissue: vessels lie inside of it, walls and heart beside it
_TRIES = 20  # places looked at for each region


def cut_negatives(volume: Volume, everything: NDArray[np.bool_], *, count: int, key: str) -> Iterator[Region]:
    """At most `count` regions around soft tissue at the lungs, none of which shows a voxel of a nodule.

    Args:
        volume: The volume.
        everything: The voxels of all its nodules.
        count: How many; fewer where nodules are everywhere, none where no lungs are found.
        key: Patient and scan; the draw depends on it.
    """
    cells = soft_cells(volume)
    random = random_of(f"without {key}")
    found = 0
    for number, *cell in random.permutation(cells)[: _TRIES * count].tolist():
        middle = (np.array(cell) + 0.5) * CELL + draw_offset(random)
        row, column = first_pixel(middle, volume.hounsfield.shape[1:])
        region = grey_region(volume, everything, (number, row, column))
        if not region.mask.any():
            yield region
            found += 1
        if found == count:
            return


def soft_cells(volume: Volume) -> NDArray[np.int64]:
    """Rows of (slice, row, column) of the cells of soft tissue inside of the lungs and at their walls."""
    from scipy import ndimage

    field = lung_field(volume.hounsfield)
    near = ndimage.binary_dilation(field, structure=np.ones((1, 3, 3)), iterations=_REACH)
    return np.argwhere(near & ~field)
