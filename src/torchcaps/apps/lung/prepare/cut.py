"""A region with what is known of the nodule in it."""

from __future__ import annotations

from dataclasses import dataclass

from .regions import Region


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
