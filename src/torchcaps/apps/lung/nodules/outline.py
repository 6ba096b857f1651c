"""The pixels that an outline encloses."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Int

Polygon = Int[np.ndarray, "points 2"]


def fill_outline(points: Polygon) -> tuple[Bool[np.ndarray, "rows columns"], int, int]:
    """The pixels inside a closed outline of (column, row) pixels, and the row and column of the first one.

    LIDC's outlines run along the first pixels outside of a nodule: pixels on the outline, and on the straight
    lines between its points, do not count.
    """
    left, top = points.min(0)
    width, height = points.max(0) - (left, top) + 1
    rows, columns = np.mgrid[0:height, 0:width]
    inside = np.zeros((height, width), dtype=bool)
    border = np.zeros((height, width), dtype=bool)
    own = points - (left, top)
    for (x0, y0), (x1, y1) in zip(own, np.roll(own, -1, axis=0), strict=True):
        cross = (x1 - x0) * (rows - y0) - (y1 - y0) * (columns - x0)
        lies_between = (columns >= min(x0, x1)) & (columns <= max(x0, x1))
        lies_between &= (rows >= min(y0, y1)) & (rows <= max(y0, y1))
        border |= (cross == 0) & lies_between
        if y0 != y1:  # a ray to the right of the pixel crosses this line
            crosses = (rows >= min(y0, y1)) & (rows < max(y0, y1))
            inside ^= crosses & ((cross > 0) if y1 > y0 else (cross < 0))
    return inside & ~border, int(top), int(left)


# the eight neighbours as (row, column), clockwise from the left one
_AROUND = ((0, -1), (-1, -1), (-1, 0), (-1, 1), (0, 1), (1, 1), (1, 0), (1, -1))


def trace_outline(inside: Bool[np.ndarray, "rows columns"]) -> Polygon:
    """The (column, row) pixels around one connected part, as an outline that `fill_outline` fills again.

    The outline is the rim of the part after it has grown by one pixel to the sides, up and down. Notches one
    pixel wide are therefore filled. The part must not touch the border of the array.
    """
    grown = inside.copy()
    for axis, step in ((0, 1), (0, -1), (1, 1), (1, -1)):
        grown |= np.roll(inside, step, axis)
    grown = np.pad(grown, 1)
    row, column = (int(number) for number in np.argwhere(grown)[0])
    path: list[tuple[int, int]] = []
    behind = 0
    while len(path) < 2 or (path[-1], (row, column)) != (path[0], path[1]):
        path.append((row, column))
        turn = next(n for n in range(1, 9) if grown[_step(row, column, behind + n)])
        last = _step(row, column, behind + turn - 1)  # the pixel outside that was looked at last
        row, column = _step(row, column, behind + turn)
        behind = _AROUND.index((last[0] - row, last[1] - column))
    return np.array(path[:-1], dtype=np.int64)[:, ::-1] - 1


def _step(row: int, column: int, turn: int) -> tuple[int, int]:
    down, right = _AROUND[turn % 8]
    return row + down, column + right
