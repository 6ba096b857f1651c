"""From probabilities to nodules: connected pieces with their place and size."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Float16, UInt16
from numpy.typing import NDArray

from torchcaps.core import UserError

from ..measure import bounding_box
from ..volume import Volume, equivalent_diameter

THRESHOLD = 0.5
SMALLEST = 3.0  # mm: the readers of LIDC-IDRI outlined nodules from this diameter on
_FEWEST_PIXELS = 8  # of a nodule in a picture, which has no millimetres
_MOST = 65535  # numbers that a label volume holds


@dataclass(frozen=True, kw_only=True)
class FoundNodule:
    """One connected piece of the predicted mask.

    Millimetres are None in a picture without spacing. The centre is in patient coordinates: left, posterior,
    superior, as in DICOM.
    """

    number: int
    slice: int  # the one that has most of it, counted from 0
    row: float  # its middle on that slice
    column: float
    voxels: int
    probability: float  # mean over its voxels
    centre: tuple[float, float, float] | None
    volume: float | None  # mm3
    diameter: float | None  # mm, of a ball of that volume


class NodulesFound(NamedTuple):
    """Nodules, the largest first, and the volume of their numbers; 0 is background."""

    nodules: list[FoundNodule]
    labels: UInt16[np.ndarray, "slices rows columns"]
    too_small: int  # pieces that were left out


def list_nodules(probability: Float16[np.ndarray, "slices rows columns"], volume: Volume) -> NodulesFound:
    """Pieces in which the probability reaches one half; voxels that share a corner are connected.

    Pieces whose ball has a diameter under 3 mm, or in a picture under 8 pixels, are left out.
    """
    from scipy import ndimage

    if probability.shape != volume.hounsfield.shape:
        raise UserError(
            f"probabilities have the size {probability.shape}, {volume.name} {volume.hounsfield.shape}"
        )
    labels = np.zeros(probability.shape, np.uint16)
    mask = probability >= THRESHOLD
    if not mask.any():
        return NodulesFound([], labels, 0)
    box = bounding_box(mask)  # the numbers of pieces take four times the memory of the scan
    pieces, count = ndimage.label(mask[box], structure=np.ones((3, 3, 3)))
    sizes = np.bincount(pieces.ravel(), minlength=count + 1)[1:]
    by_size = np.argsort(-sizes, kind="stable").tolist()
    order = [piece for piece in by_size if _is_large(int(sizes[piece]), volume)]
    if len(order) > _MOST:
        raise UserError(f"{len(order)} nodules in {volume.name}: the network marks noise; train it further")
    places = ndimage.find_objects(pieces)
    nodules = []
    for number, piece in enumerate(order, start=1):
        inside = pieces[places[piece]] == piece + 1
        corner = [part.start + whole.start for part, whole in zip(places[piece], box, strict=True)]
        place = tuple(slice(first, first + side) for first, side in zip(corner, inside.shape, strict=True))
        labels[place][inside] = number
        nodules.append(_describe(number, inside, probability[place], corner, volume))
    return NodulesFound(nodules, labels, count - len(order))


def _is_large(voxels: int, volume: Volume) -> bool:
    size = volume.size_of(voxels)
    return voxels >= _FEWEST_PIXELS if size is None else equivalent_diameter(size) >= SMALLEST


def _describe(
    number: int,
    inside: NDArray[np.bool_],
    probability: NDArray[np.float16],
    start: list[int],
    volume: Volume,
) -> FoundNodule:
    voxels = int(np.count_nonzero(inside))
    middle = np.argwhere(inside).mean(0) + start
    largest = int(inside.sum((1, 2)).argmax())
    row, column = (np.argwhere(inside[largest]).mean(0) + start[1:]).tolist()
    size = volume.size_of(voxels)
    centre = volume.affine @ [*middle[::-1], 1.0]
    return FoundNodule(
        number=number,
        slice=start[0] + largest,
        row=row,
        column=column,
        voxels=voxels,
        probability=float(probability[inside].mean(dtype=np.float64)),
        centre=None if size is None else (float(centre[0]), float(centre[1]), float(centre[2])),
        volume=size,
        diameter=None if size is None else equivalent_diameter(size),
    )
