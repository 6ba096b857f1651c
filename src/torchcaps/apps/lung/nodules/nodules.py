"""Nodules: what several readers marked, brought together, and what at least half of them agree on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..volume import Volume, equivalent_diameter
from .annotations import Annotations
from .blob import Blob, common_box, marked_voxels, overlap, union

_AGREEMENT = 0.5  # share of the readers that marked a nodule


@dataclass(frozen=True, eq=False)
class Nodule:
    """A nodule of a volume.

    Attributes:
        voxels: What at least half of the readers that marked it enclosed.
        readers: How many marked it.
        volume_mm3: Of the voxels.
        malignancy: Median of the readers' scores from 1 to 5; None where nobody gave one.
    """

    voxels: Blob
    readers: int
    volume_mm3: float | None
    malignancy: float | None = None

    @property
    def diameter_mm(self) -> float | None:
        """The diameter of a ball of the same volume."""
        return None if self.volume_mm3 is None else equivalent_diameter(self.volume_mm3)


class _Marked(NamedTuple):
    """Voxels that one reader enclosed."""

    reader: int
    voxels: Blob
    malignancy: int | None


def find_nodules(annotations: Annotations, volume: Volume) -> list[Nodule]:
    """The nodules of a series in the order of their slices; those of less than 3 mm have no outline."""
    marked = []
    for marking in annotations.markings:
        voxels = None if marking.is_small else marked_voxels(marking, volume)
        if voxels is not None:
            marked.append(_Marked(marking.reader, voxels, marking.malignancy))
    groups = [
        [marked[number] for number in group] for group in cluster([each.voxels for each in marked], volume)
    ]
    found = [_agree(group, volume) for group in groups]
    return sorted(
        (each for each in found if each is not None), key=lambda each: tuple(each.voxels.middle.tolist())
    )


def cluster(blobs: Sequence[Blob], volume: Volume) -> list[list[int]]:
    """Numbers of the blobs that mean one nodule: linked, also through others, by overlap or nearness.

    Two are near where the distance of their middles is at most half the diameter of the smaller one, or the
    largest side of a voxel.
    """
    group = list(range(len(blobs)))
    for second in range(len(blobs)):
        for first in range(second):
            if group[first] != group[second] and _are_one(blobs[first], blobs[second], volume):
                old, new = group[second], group[first]
                group = [new if each == old else each for each in group]
    return [[n for n, own in enumerate(group) if own == each] for each in dict.fromkeys(group)]


def _are_one(first: Blob, second: Blob, volume: Volume) -> bool:
    if overlap(first, second):
        return True
    distance = float(np.linalg.norm((first.middle - second.middle) * volume.millimetres))
    smaller = min(first.count, second.count) * prod(volume.millimetres)
    return distance <= max(equivalent_diameter(smaller) / 2, *volume.millimetres)


def consensus(by_reader: Sequence[Blob]) -> Blob | None:
    """The voxels that at least half of the readers enclosed; None where they agree on none."""
    box = common_box(by_reader)
    agreed = np.mean([blob.within(box) for blob in by_reader], axis=0) >= _AGREEMENT
    return Blob(box.low, agreed).trimmed() if agreed.any() else None


def _agree(group: Sequence[_Marked], volume: Volume) -> Nodule | None:
    readers = sorted({each.reader for each in group})
    by_reader = [union([each.voxels for each in group if each.reader == reader]) for reader in readers]
    agreed = consensus(by_reader)
    if agreed is None:
        return None
    scores = [each.malignancy for each in group if each.malignancy is not None]
    malignancy = float(np.median(scores)) if scores else None
    return Nodule(agreed, len(readers), volume.size_of(agreed.count), malignancy)


def nodules_of_mask(mask: NDArray[np.bool_], volume: Volume) -> list[Nodule]:
    """The parts of a mask as nodules that one reader marked; voxels that touch by a corner are one part."""
    from scipy import ndimage

    labels, _ = ndimage.label(mask, structure=np.ones((3, 3, 3)))
    found = []
    for number, place in enumerate(ndimage.find_objects(labels), start=1):
        corner = np.array([part.start for part in place])
        voxels = Blob(corner, labels[place] == number)
        found.append(Nodule(voxels, 1, volume.size_of(voxels.count)))
    return found
