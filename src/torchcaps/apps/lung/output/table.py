"""The list of nodules as text that spreadsheets read."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from io import StringIO

from ..segment import FoundNodule

COLUMNS = (
    "nodule", "slice", "row", "column", "voxels", "x_mm", "y_mm", "z_mm", "volume_mm3", "diameter_mm",
    "mean_probability",
)  # fmt: skip


def nodule_rows(nodules: Sequence[FoundNodule]) -> list[dict[str, int | float | None]]:
    """One row for each nodule; what a picture does not tell is None.

    The centre is in patient coordinates, to the left, back and up; slices are counted from 0.
    """
    return [dict(zip(COLUMNS, _cells(nodule), strict=True)) for nodule in nodules]


def _cells(nodule: FoundNodule) -> list[int | float | None]:
    centre = nodule.centre or (None, None, None)
    return [
        nodule.number,
        nodule.slice,
        round(nodule.row, 1),
        round(nodule.column, 1),
        nodule.voxels,
        *(_rounded(value, 2) for value in centre),
        _rounded(nodule.volume, 1),
        _rounded(nodule.diameter, 2),
        round(nodule.probability, 4),
    ]


def _rounded(value: float | None, digits: int) -> float | None:
    return None if value is None else round(value, digits)


def nodule_table(nodules: Sequence[FoundNodule]) -> str:
    """The rows as CSV, with their names first; unknown cells are empty."""
    buffer = StringIO()
    writer = csv.DictWriter(buffer, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(nodule_rows(nodules))
    return buffer.getvalue()
