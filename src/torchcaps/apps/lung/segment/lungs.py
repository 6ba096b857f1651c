"""Where the lungs are, roughly: the boxes that a network has to look at."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Shaped
from numpy.typing import NDArray

CELL = 4  # pixels on a side that are looked at as one
_AIR = -400  # Hounsfield units: below are air and lungs, above are tissue and bones
_EMPTY = -930  # outside of the body the mean is below; lungs, even emphysematous ones, are above
_SMALLEST = 0.002  # of a slice: smaller pockets of air are none of the lungs' cross-sections
_SMALLER_ORGANS = 0.05  # of the largest body of air: smaller ones are gas in the bowel


class Box(NamedTuple):
    """Rows and columns of a slice, the ends excluded."""

    top: int
    bottom: int
    left: int
    right: int


def lung_field(hounsfield: Shaped[np.ndarray, "slices rows columns"]) -> Bool[np.ndarray, "slices _y _x"]:
    """Cells of 4x4 pixels that are lung; all of them where no lungs are found.

    Air is what lies below -400 HU. Of the pieces of air in a slice, those that reach its edge and are on
    average below -930 HU are outside of the body, and tiny ones are noise. Of the rest, bodies with less than
    a twentieth of the largest one's volume are left out.
    """
    field = np.stack([_lungs_of_slice(_cells(each)) for each in hounsfield])
    field = _large_bodies(field)
    return field if field.any() else np.ones_like(field)


def _cells(pixels: NDArray[np.generic]) -> NDArray[np.float32]:
    """Means of squares of pixels; the last row and column may be of fewer."""
    rows, columns = (-(-side // CELL) * CELL for side in pixels.shape)
    padding = [(0, rows - pixels.shape[0]), (0, columns - pixels.shape[1])]
    whole = np.pad(pixels, padding, mode="edge").astype(np.float32)
    return whole.reshape(rows // CELL, CELL, columns // CELL, CELL).mean((1, 3))


def _lungs_of_slice(cells: NDArray[np.float32]) -> NDArray[np.bool_]:
    from scipy import ndimage

    labels, count = ndimage.label(cells < _AIR)
    numbers = np.arange(1, count + 1)
    means = np.asarray(ndimage.mean(cells, labels, numbers))
    sizes = np.bincount(labels.ravel(), minlength=count + 1)[1:]
    edge = np.concatenate([labels[0], labels[-1], labels[:, 0], labels[:, -1]])
    is_outside = np.isin(numbers, edge) & (means < _EMPTY)
    is_lung = ~is_outside & (sizes >= _SMALLEST * cells.size)
    return np.concatenate([[False], is_lung])[labels]


def _large_bodies(field: NDArray[np.bool_]) -> NDArray[np.bool_]:
    from scipy import ndimage

    labels, _ = ndimage.label(field)
    sizes = np.bincount(labels.ravel())
    sizes[0] = 0
    return (sizes >= _SMALLER_ORGANS * max(1, sizes.max()))[labels]


def lung_box(field: Bool[np.ndarray, "slices _y _x"], shape: tuple[int, ...], margin: int) -> Box | None:
    """The box around the lungs of some slices, `margin` pixels wider on each side; None without any."""
    found: NDArray[np.bool_] = np.any(field, axis=0)
    if not found.any():
        return None
    ends = []
    for axis, side in ((1, shape[0]), (0, shape[1])):
        (filled,) = np.nonzero(np.any(found, axis=axis))
        ends += [max(0, int(filled[0]) * CELL - margin), min(side, int(filled[-1] + 1) * CELL + margin)]
    return Box(*ends)
