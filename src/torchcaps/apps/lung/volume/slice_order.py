"""Where slices lie in the patient: their order, duplicates, gaps, and the affine of the volume."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from numpy.typing import NDArray

from torchcaps.core import UserError, counted

_SAME_PLACE = 1e-3  # mm
_UNEVEN = 0.1  # the share of the spacing by which two distances may differ; scanners round positions


class Ordered(NamedTuple):
    """Slices in their order along the normal.

    Attributes:
        order: Numbers of the slices that are kept.
        dropped: Numbers of those that lie where another one lies.
        distance: Millimetres between neighbours; None for a single slice.
        step: From one slice to the next, in millimetres of the patient.
    """

    order: list[int]
    dropped: list[int]
    distance: float | None
    step: NDArray[np.float64]


def order_slices(
    positions: Float[np.ndarray, "slices 3"], orientation: Float[np.ndarray, "2 3"], name: str
) -> Ordered:
    """Sort slices along the normal of their plane; of several in one place the first is kept.

    A gap is an error: a volume with a made-up slice would give made-up nodules.

    Args:
        positions: Of the first pixel of each slice, in millimetres.
        orientation: Unit vectors along a row and along a column.
        name: Of the series, for messages.
    """
    normal = np.cross(orientation[0], orientation[1])
    heights = positions @ normal
    order = np.argsort(heights, kind="stable").tolist()
    kept = [order[0]]
    for number in order[1:]:
        if heights[number] - heights[kept[-1]] > _SAME_PLACE:
            kept.append(number)
    dropped = sorted(set(order) - set(kept))
    if len(kept) == 1:
        return Ordered(kept, dropped, None, normal)
    distances = np.diff(heights[kept])
    usual = float(np.median(distances))
    _check_gaps(heights[kept], distances, usual, name)
    step = (positions[kept[-1]] - positions[kept[0]]) / (len(kept) - 1)
    return Ordered(kept, dropped, float(distances.mean()), step)


def _check_gaps(
    heights: NDArray[np.float64], distances: NDArray[np.float64], usual: float, name: str
) -> None:
    wrong = np.flatnonzero(np.abs(distances - usual) > _UNEVEN * usual)
    if not len(wrong):
        return
    first = int(wrong[0])
    missing = int(np.round(distances[wrong] / usual - 1).clip(min=0).sum())
    verb = "is" if missing == 1 else "are"
    what = f"{counted(missing, 'slice')} {verb} missing" if missing else "slices are unevenly spaced"
    raise UserError(
        f"{name}: {what}; the first gap lies between {heights[first]:.2f} and {heights[first + 1]:.2f} mm, "
        f"where slices are {usual:.2f} mm apart elsewhere; get the series again"
    )


def volume_affine(
    origin: Float[np.ndarray, " 3"],
    orientation: Float[np.ndarray, "2 3"],
    pixel_spacing: tuple[float, float],
    step: Float[np.ndarray, " 3"],
) -> Float[np.ndarray, "4 4"]:
    """The map from (column, row, slice) to millimetres; `pixel_spacing` is between rows, then columns."""
    rows, columns = pixel_spacing
    affine = np.eye(4)
    affine[:3, 0] = orientation[0] * columns
    affine[:3, 1] = orientation[1] * rows
    affine[:3, 2] = step
    affine[:3, 3] = origin
    return affine
