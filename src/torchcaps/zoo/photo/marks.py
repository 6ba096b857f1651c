"""Connected marks on a page, and which of them are the digit."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .size import Levels, Pixels

_LEAST_OF_EDGE = 0.03  # share of the largest mark at the edge from which on one inside the page counts
_LEAST_OF_MAIN = 0.08  # a further stroke has this share of the ink of the main one
_NEAR = 0.35  # and lies within this share of its height
_TRIED = 12  # marks with the most ink, of which one is the digit
_STRONG = 3  # power of the ink by which pixels count: strokes are darker than stains and lines
_SMALLEST = 8  # pixels along the longer side of a mark, below which it is a stain
_SMALLEST_AT_EDGE = 0.1  # and share of the page, where it runs off: the rest of a line
_SOLID = 0.27  # share of the longer side, which half of a stroke is narrower than
_FLATTEST = 3.0  # width by height of a digit at most: a line is flatter
_WIDEST, _WIDE = 1.6, 0.3  # and of an upright one; by how much less a wider mark counts
_ROUND, _RADIUS = 0.04, 0.6  # share of the radius of a cup's ring that it is off a circle; and of its side
_AS_LARGE = 0.33  # share of the longest side of the main stroke from which on another mark may be a digit too


class Mark(NamedTuple):
    """Pixels that touch one another: their number, the box around them, and whether it reaches the edge."""

    label: int
    pixels: int
    top: int
    bottom: int
    left: int
    right: int
    is_at_edge: bool

    @property
    def side(self) -> int:
        """The longer side of the box."""
        return max(self.bottom - self.top, self.right - self.left)


class Found(NamedTuple):
    """What is taken for a digit.

    Attributes:
        pixels: Where it is.
        others: How many other marks there are.
        rivals: How many of them may be digits too.
        is_stain: Whether no mark looks like a digit.
    """

    pixels: Pixels
    others: int
    rivals: int
    is_stain: bool


def label_marks(is_ink: Pixels) -> NDArray[np.int64]:
    """A number from 1 on for each set of pixels that touch, also at corners; 0 is paper."""
    labels = np.zeros(is_ink.shape, dtype=np.int64)
    parents = [0]

    def root(label: int) -> int:
        while parents[label] != label:
            parents[label] = parents[parents[label]]
            label = parents[label]
        return label

    framed = np.pad(is_ink, ((0, 0), (1, 1)))
    ends = np.argwhere(framed[:, 1:] != framed[:, :-1]).tolist()  # of runs of ink: first, last + 1, ...
    for (row, start), (_, stop) in zip(ends[::2], ends[1::2], strict=True):
        above = labels[row - 1, max(start - 1, 0) : stop + 1].tolist() if row else []
        met = {root(label) for label in set(above) if label}
        label = min(met) if met else len(parents)
        if not met:
            parents.append(label)
        for other in met:
            parents[other] = label
        labels[row, start:stop] = label
    return np.array([root(label) for label in range(len(parents))], dtype=np.int64)[labels]


def measured(labels: NDArray[np.int64]) -> list[Mark]:
    """The marks of a page, in the order of their numbers."""
    rows, columns = np.nonzero(labels)
    names, which, pixels = np.unique(labels[rows, columns], return_inverse=True, return_counts=True)
    last = np.array(labels.shape) - 1
    first_places = np.tile(last, (len(names), 1))
    last_places = np.zeros_like(first_places)
    np.minimum.at(first_places, which, np.stack([rows, columns], 1))
    np.maximum.at(last_places, which, np.stack([rows, columns], 1))
    is_at_edge = ((first_places == 0) | (last_places == last)).any(1)
    sides = np.stack([first_places, last_places], 2).reshape(-1, 4)  # top, bottom, left, right
    fields = (names, pixels, *sides.T, is_at_edge)
    return [Mark(*values) for values in zip(*(column.tolist() for column in fields), strict=True)]


def find_digit(labels: NDArray[np.int64], ink: Levels) -> Found:
    """The strokes that make up the digit.

    The digit is the mark with the most ink that does not run off the page and looks like one, with the
    strokes near it; where all marks run off the page, it fills the picture.

    Args:
        labels: The marks.
        ink: How strong it is, 1 for full ink.
    """
    marks = measured(labels)
    inside = [mark for mark in marks if not mark.is_at_edge]
    outside = max((mark.pixels for mark in marks if mark.is_at_edge), default=0)
    if not inside or max(mark.pixels for mark in inside) < _LEAST_OF_EDGE * outside:
        inside = marks
    weights = np.bincount(labels.ravel(), np.minimum(ink, 1).ravel() ** _STRONG)
    most = sorted(inside, key=lambda mark: float(weights[mark.label]), reverse=True)[:_TRIED]
    scores = [_likeness(labels, mark) * float(weights[mark.label]) for mark in most]
    main = most[int(np.argmax(scores))]
    chosen = [mark.label for mark in inside if _belongs(mark, main)]
    others = [mark for mark in marks if mark.label not in chosen]
    large = [mark for mark in others if mark.side >= _AS_LARGE * main.side and not mark.is_at_edge]
    rivals = sum(_likeness(labels, mark) > 0 for mark in large)
    return Found(np.isin(labels, chosen), len(others), rivals, max(scores) == 0)


def _likeness(labels: NDArray[np.int64], mark: Mark) -> float:
    """1 for strokes that may be an upright digit, less for wide ones, 0 for a stain or a line."""
    pixels = labels[mark.top : mark.bottom + 1, mark.left : mark.right + 1] == mark.label
    height, width = pixels.shape
    by = max(1, round(_SOLID * max(pixels.shape)))
    smallest = _SMALLEST_AT_EDGE * min(labels.shape) if mark.is_at_edge else _SMALLEST
    is_stain = max(pixels.shape) < smallest or narrowed(np.pad(pixels, by), by).any()
    if is_stain or width > _FLATTEST * height or _is_ring(pixels):
        return 0.0
    return 1.0 if width <= _WIDEST * height else _WIDE


def _is_ring(pixels: Pixels) -> bool:
    """Whether the pixels lie on a third of a circle or more, more exactly than a hand draws: a cup left them.

    The circle is that of the least squares (Kasa 1976).
    """
    places = np.argwhere(pixels).astype(np.float64)
    known = np.column_stack([2 * places, np.ones(len(places))])
    *middle, rest = np.linalg.lstsq(known, (places**2).sum(1), rcond=None)[0]
    radius = float(np.sqrt(max(rest + np.square(middle).sum(), 0.0)))
    off = np.hypot(*(places - middle).T) - radius
    return radius <= _RADIUS * max(pixels.shape) and bool(np.sqrt((off**2).mean()) <= _ROUND * radius)


def widened(pixels: Pixels) -> Pixels:
    """The pixels and their neighbours."""
    framed = np.pad(pixels, 1)
    rows = framed[:-2] | framed[1:-1] | framed[2:]
    return rows[:, :-2] | rows[:, 1:-1] | rows[:, 2:]


def widened_by(pixels: Pixels, by: int) -> Pixels:
    """The pixels and those that lie at most `by` from them."""
    for _ in range(by):
        pixels = widened(pixels)
    return pixels


def narrowed(pixels: Pixels, by: int) -> Pixels:
    """The pixels from which all others lie more than `by` away."""
    return ~widened_by(~pixels, by)


def _belongs(mark: Mark, main: Mark) -> bool:
    gap = max(
        mark.top - main.bottom, main.top - mark.bottom, mark.left - main.right, main.left - mark.right, 0
    )
    width, height = mark.right - mark.left, mark.bottom - mark.top
    underlines = mark.top > main.bottom and width > max(main.side, _FLATTEST * height)
    return mark.pixels >= _LEAST_OF_MAIN * main.pixels and gap <= _NEAR * main.side and not underlines
