"""How well a predicted mask fits the true one: overlap, distance of the surfaces, and volume."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float
from numpy.typing import NDArray

from torchcaps.core import UserError

Mask = Bool[np.ndarray, "*axes"]


class Overlap(NamedTuple):
    """What one predicted mask is worth.

    Two empty masks agree: Dice and IoU are 1 and HD95 is 0. Where one of two masks is empty, Dice and IoU are
    0 and HD95 is not a number, for there is no surface to be far from. The relative volume error is not a
    number where the true mask is empty and the predicted one is not.
    """

    dice: float
    iou: float
    hd95: float  # millimetres
    volume_error: float  # (predicted - true) / true: above 0 where too much was marked
    volume: float  # mm3 of the true mask
    predicted_volume: float  # mm3


def measure(predicted: Mask, truth: Mask, spacing: Sequence[float]) -> Overlap:
    """All measures of a predicted mask; `spacing` has the millimetres of each axis."""
    _check(predicted, truth, spacing)
    both, marked, real = _count(predicted, truth)
    voxel = math.prod(spacing)
    return Overlap(
        dice=dice(predicted, truth),
        iou=_share(both, marked + real - both),
        hd95=hausdorff_95(predicted, truth, spacing),
        volume_error=(marked - real) / real if real else (math.nan if marked else 0.0),
        volume=real * voxel,
        predicted_volume=marked * voxel,
    )


def dice(predicted: Mask, truth: Mask) -> float:
    """2 |A and B| / (|A| + |B|); two empty masks agree."""
    both, marked, real = _count(predicted, truth)
    return _share(2 * both, marked + real)


def _count(predicted: Mask, truth: Mask) -> tuple[int, int, int]:
    """Voxels of both masks, of the predicted one, and of the true one."""
    both, marked, real = (int(np.count_nonzero(each)) for each in (predicted & truth, predicted, truth))
    return both, marked, real


def hausdorff_95(predicted: Mask, truth: Mask, spacing: Sequence[float]) -> float:
    """The 95th percentile of the distances between two surfaces, in millimetres.

    Distances run from each border voxel of one mask to the nearest one of the other; the percentile is taken
    for each direction, and the larger one counts (as MONAI does).
    """
    _check(predicted, truth, spacing)
    if not predicted.any() and not truth.any():
        return 0.0
    if not predicted.any() or not truth.any():
        return math.nan
    box = bounding_box(predicted | truth)
    borders = [_border(each[box]) for each in (predicted, truth)]
    forth, back = (np.percentile(_distances(borders[to], spacing)[borders[1 - to]], 95) for to in (0, 1))
    return float(max(forth, back))


def _check(predicted: Mask, truth: Mask, spacing: Sequence[float]) -> None:
    if predicted.shape != truth.shape:
        raise UserError(f"the predicted mask has the size {predicted.shape}, the true one {truth.shape}")
    if len(spacing) != predicted.ndim or not all(math.isfinite(step) and step > 0 for step in spacing):
        raise UserError(f"masks of {predicted.ndim} axes need as many positive spacings, got {list(spacing)}")


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 1.0


def bounding_box(mask: Mask) -> tuple[slice, ...]:
    """The smallest box around a mask that is not empty."""
    ranges = []
    for axis in range(mask.ndim):
        others = tuple(other for other in range(mask.ndim) if other != axis)
        (found,) = np.nonzero(mask.any(axis=others))
        ranges.append(slice(int(found[0]), int(found[-1]) + 1))
    return tuple(ranges)


def _border(mask: Mask) -> NDArray[np.bool_]:
    """Voxels of the mask that have a neighbour outside of it; so have those at the edge of the array."""
    from scipy import ndimage

    return mask & ~ndimage.binary_erosion(mask)


def _distances(border: Mask, spacing: Sequence[float]) -> Float[np.ndarray, "*axes"]:
    from scipy import ndimage

    return ndimage.distance_transform_edt(~border, sampling=tuple(spacing))
