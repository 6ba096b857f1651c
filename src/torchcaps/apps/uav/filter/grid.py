"""The grid of places and headings over which the filter spreads its belief."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from torchcaps.core import Number, UserError


@dataclass(frozen=True)
class Grid:
    """Voxels of (heading, y, x): `x` grows to the east, `y` to the north, headings turn left from east.

    Attributes:
        west: Western edge in metres of the map's projection.
        south: Southern edge in metres.
        cell: Side of a cell in metres.
        columns: Cells from west to east.
        rows: Cells from south to north.
        headings: Parts of the full circle.
    """

    west: Number
    south: Number
    cell: Number
    columns: int
    rows: int
    headings: int

    def __post_init__(self) -> None:
        if not (self.cell > 0 and math.isfinite(self.cell)):
            raise UserError(f"a cell of the grid needs a positive size in metres, not {self.cell}")
        if self.headings < 1:
            raise UserError(f"a circle has at least 1 heading, not {self.headings}")
        if min(self.columns, self.rows) < 1:
            raise UserError(
                f"a grid of {self.headings} x {self.rows} x {self.columns} voxels holds no belief"
            )

    @property
    def shape(self) -> tuple[int, int, int]:
        """Headings, rows, columns: the shape of a belief."""
        return self.headings, self.rows, self.columns

    @property
    def voxels(self) -> int:
        """Number of voxels."""
        return math.prod(self.shape)

    @property
    def heading_step(self) -> float:
        """Width of a heading in radians."""
        return 2 * math.pi / self.headings

    @property
    def heading_centres(self) -> NDArray[np.float64]:
        """The middle of each heading in radians; the first heading begins at 0."""
        return (np.arange(self.headings, dtype=np.float64) + 0.5) * self.heading_step

    @property
    def x_centres(self) -> NDArray[np.float64]:
        """The middle of each column in metres."""
        return self.west + (np.arange(self.columns, dtype=np.float64) + 0.5) * self.cell

    @property
    def y_centres(self) -> NDArray[np.float64]:
        """The middle of each row in metres."""
        return self.south + (np.arange(self.rows, dtype=np.float64) + 0.5) * self.cell
