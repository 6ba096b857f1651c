"""Voxels in a box: a small part of a volume that knows where it lies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool
from numpy.typing import NDArray

from torchcaps.core import UserError

from ..volume import Volume
from .annotations import Marking, Outline
from .outline import fill_outline


class Box(NamedTuple):
    """First voxel, and the one after the last, as (slice, row, column)."""

    low: NDArray[np.int64]
    high: NDArray[np.int64]

    @property
    def slices(self) -> tuple[slice, ...]:
        """The index of its voxels."""
        return tuple(slice(low, high) for low, high in zip(self.low, self.high, strict=True))

    def seen_from(self, corner: NDArray[np.int64]) -> Box:
        """The same box where voxels are counted from `corner`."""
        return Box(self.low - corner, self.high - corner)


@dataclass(frozen=True, eq=False)
class Blob:
    """Voxels of a volume: `inside` is about the box whose first voxel is `corner`, (slice, row, column)."""

    corner: NDArray[np.int64]
    inside: Bool[np.ndarray, "slices rows columns"]

    @property
    def box(self) -> Box:
        """Where it lies."""
        return Box(self.corner, self.corner + self.inside.shape)

    @property
    def count(self) -> int:
        """How many voxels it has."""
        return int(self.inside.sum())

    @property
    def middle(self) -> NDArray[np.float64]:
        """The mean place of its voxels, as (slice, row, column)."""
        return np.argwhere(self.inside).mean(0) + self.corner

    def within(self, box: Box) -> NDArray[np.bool_]:
        """The voxels, laid out in a box that holds all of them."""
        grown = np.zeros(tuple(box.high - box.low), dtype=bool)
        grown[self.box.seen_from(box.low).slices] = self.inside
        return grown

    def trimmed(self) -> Blob:
        """The same voxels in the smallest box; at least one is needed."""
        found = np.argwhere(self.inside)
        box = Box(found.min(0), found.max(0) + 1)
        return Blob(self.corner + box.low, self.inside[box.slices])


def common_box(blobs: Sequence[Blob]) -> Box:
    """The smallest box that holds all blobs."""
    return Box(
        np.min([blob.box.low for blob in blobs], axis=0), np.max([blob.box.high for blob in blobs], axis=0)
    )


def union(blobs: Sequence[Blob]) -> Blob:
    """The voxels of any of the blobs."""
    box = common_box(blobs)
    return Blob(box.low, np.any([blob.within(box) for blob in blobs], axis=0))


def overlap(first: Blob, second: Blob) -> bool:
    """Whether two blobs share a voxel."""
    both = Box(np.maximum(first.box.low, second.box.low), np.minimum(first.box.high, second.box.high))
    if (both.low >= both.high).any():
        return False
    parts = [blob.inside[both.seen_from(blob.corner).slices] for blob in (first, second)]
    return bool((parts[0] & parts[1]).any())


def marked_voxels(marking: Marking, volume: Volume) -> Blob | None:
    """The voxels that a reader's outlines enclose; None where they enclose none.

    Outlined exclusions are cut out, without the pixels of their outline.
    """
    planes: dict[int, NDArray[np.bool_]] = {}
    for outline in sorted(marking.outlines, key=lambda each: not each.is_inclusion):
        number = slice_at(outline.height, volume)
        _check_image(outline, number, volume)
        plane = planes.setdefault(number, np.zeros(volume.hounsfield.shape[1:], dtype=bool))
        _check_inside(outline.points, plane.shape, volume.name)
        filled, top, left = fill_outline(outline.points)
        part = plane[top : top + filled.shape[0], left : left + filled.shape[1]]
        part[filled] = outline.is_inclusion
    if not any(plane.any() for plane in planes.values()):
        return None
    first, last = min(planes), max(planes)
    empty = np.zeros(volume.hounsfield.shape[1:], dtype=bool)
    inside = np.stack([planes.get(number, empty) for number in range(first, last + 1)])
    return Blob(np.array([first, 0, 0]), inside).trimmed()


def slice_at(height: float, volume: Volume) -> int:
    """The number of the slice at a height in mm; an error where there is none within half a spacing."""
    heights = volume.affine[2, 3] + volume.affine[2, 2] * np.arange(len(volume.hounsfield))
    number = int(np.abs(heights - height).argmin())
    if abs(heights[number] - height) > 0.5 * volume.millimetres[0] + 1e-3:
        raise UserError(
            f"{volume.name}: a reader outlined a slice at {height} mm, but slices lie between "
            f"{heights.min():.2f} and {heights.max():.2f} mm; the annotations are not of this series"
        )
    return number


def _check_image(outline: Outline, number: int, volume: Volume) -> None:
    """Raise where the image that an outline names is another slice than the one at its height."""
    if not outline.image_uid or outline.image_uid not in volume.image_uids:
        return
    named = volume.image_uids.index(outline.image_uid)
    if named != number:
        raise UserError(
            f"{volume.name}: a reader outlined a slice at {outline.height} mm, but the image that is named "
            f"lies {abs(named - number) * volume.millimetres[0]:g} mm away; get the series and its "
            "annotations again"
        )


def _check_inside(points: NDArray[np.int64], shape: tuple[int, ...], name: str) -> None:
    rows, columns = shape
    if points.min() < 0 or points[:, 0].max() >= columns or points[:, 1].max() >= rows:
        raise UserError(f"{name}: an outline leaves the slice of {rows}x{columns} pixels")
