"""Connected marks on a page, and which of them are the digit."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

_LEAST_OF_EDGE = 0.03  # share of the largest mark at the edge from which on one inside the page counts
_LEAST_OF_MAIN = 0.08  # a further stroke has this share of the ink of the main one
_NEAR = 0.35  # and lies within this share of its height


class Mark(NamedTuple):
    """Pixels that touch one another: their number, the box around them, and whether it reaches the edge."""

    label: int
    pixels: int
    top: int
    bottom: int
    left: int
    right: int
    is_at_edge: bool


def label_marks(is_ink: NDArray[np.bool_]) -> NDArray[np.int64]:
    """A number from 1 on for each set of pixels that touch, also at corners; 0 is paper."""
    labels = np.zeros(is_ink.shape, dtype=np.int64)
    parents = [0]

    def root(label: int) -> int:
        while parents[label] != label:
            parents[label] = parents[parents[label]]
            label = parents[label]
        return label

    for row, line in enumerate(is_ink):
        edges = np.flatnonzero(np.diff(np.concatenate([[False], line, [False]]).astype(np.int8)))
        for start, stop in edges.reshape(-1, 2):
            above = labels[row - 1, max(start - 1, 0) : stop + 1] if row else labels[:0, 0]
            met = {root(int(label)) for label in np.unique(above) if label}
            label = min(met) if met else len(parents)
            if not met:
                parents.append(label)
            for other in met:
                parents[other] = label
            labels[row, start:stop] = label
    return np.array([root(label) for label in range(len(parents))], dtype=np.int64)[labels]


def find_digit(labels: NDArray[np.int64]) -> tuple[NDArray[np.bool_], int]:
    """The pixels of the strokes that make up the digit, and how many other marks there are.

    The digit is the largest mark that does not run off the page, with the strokes near it; where all marks
    run off the page, it fills the picture.
    """
    marks = [_measured(labels, int(label)) for label in np.unique(labels) if label]
    inside = [mark for mark in marks if not mark.is_at_edge]
    outside = max((mark.pixels for mark in marks if mark.is_at_edge), default=0)
    if not inside or max(mark.pixels for mark in inside) < _LEAST_OF_EDGE * outside:
        inside = marks
    main = max(inside, key=lambda mark: mark.pixels)
    chosen = [mark.label for mark in inside if _belongs(mark, main)]
    return np.isin(labels, chosen), len(marks) - len(chosen)


def widened(pixels: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """The pixels and their neighbours."""
    framed = np.pad(pixels, 1)
    height, width = pixels.shape
    shifts = [framed[row : row + height, column : column + width] for row in range(3) for column in range(3)]
    return np.any(shifts, axis=0)


def _measured(labels: NDArray[np.int64], label: int) -> Mark:
    rows, columns = np.nonzero(labels == label)
    top, bottom, left, right = int(rows.min()), int(rows.max()), int(columns.min()), int(columns.max())
    height, width = labels.shape
    is_at_edge = top == 0 or left == 0 or bottom == height - 1 or right == width - 1
    return Mark(label, len(rows), top, bottom, left, right, is_at_edge)


def _belongs(mark: Mark, main: Mark) -> bool:
    gap = max(
        mark.top - main.bottom, main.top - mark.bottom, mark.left - main.right, main.left - mark.right, 0
    )
    reach = _NEAR * max(main.bottom - main.top, main.right - main.left)
    return mark.pixels >= _LEAST_OF_MAIN * main.pixels and gap <= reach
