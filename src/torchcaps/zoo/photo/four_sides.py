"""Shapes with four sides on a page: sheets of paper, and boxes and circles that are drawn around a digit."""

from __future__ import annotations

from math import cos, pi, sin

import numpy as np
from numpy.typing import NDArray

from .marks import Mark, label_marks, measured, widened
from .size import Levels, Pixels

_FOUR_SIDED = 0.88  # of a shape and the quadrilateral in it, the share that is in both; of a digit, under 0.8
_LONGEST_SIDE = 4.0  # times the shortest one: a stroke is longer
_TURNS = 18  # angles in which corners are looked for
_MOST_LINE = 0.5  # share of a box that its line covers
_LEAST_INSIDE = 0.05  # of the pixels of the line, those of the marks in a box
_MOST_BOXES = 3  # one inside the other
_NARROWEST = 0.8  # width by height of a line around a digit that has another shape; a zero is narrower
_TALL = 0.4  # times its shorter side, the least of the longer side of a mark in it


def without_boxes(labels: NDArray[np.int64]) -> tuple[NDArray[np.int64], int]:
    """The marks without boxes and circles that are drawn around others, and how many there are."""
    for found in range(_MOST_BOXES):
        largest = max(measured(labels), key=_spanned, default=None)
        if largest is None or not _is_box(largest, labels):
            return labels, found
        labels = np.where(labels == largest.label, 0, labels)
    return labels, _MOST_BOXES


def _spanned(mark: Mark) -> int:
    return (mark.bottom - mark.top + 1) * (mark.right - mark.left + 1)


def _is_box(mark: Mark, labels: NDArray[np.int64]) -> bool:
    line = labels == mark.label
    box = without_holes(widened(line))  # small gaps in a line do not open it
    inside = np.where(box & ~line, labels, 0)
    is_thin = line.sum() <= _MOST_LINE * box.sum()
    if not is_thin or (inside > 0).sum() < max(1, _LEAST_INSIDE * line.sum()):
        return False
    return _is_filled(mark, max(other.side for other in measured(inside))) or is_four_sided(box)


def _is_filled(line: Mark, longest: int) -> bool:
    """Whether a mark that long fills a circle, or a row of cells, as a digit does that was written in it."""
    height, width = line.bottom - line.top, line.right - line.left
    return width >= _NARROWEST * height and longest >= _TALL * min(height, width)


def without_holes(pixels: Pixels) -> Pixels:
    """The pixels and all that they surround."""
    labels = label_marks(np.pad(~pixels, 1, constant_values=True))
    return (labels != labels[0, 0])[1:-1, 1:-1]


def is_four_sided(pixels: Pixels, longest: float = _LONGEST_SIDE) -> bool:
    """Whether the pixels fill a quadrilateral, whose longest side is at most `longest` times the shortest."""
    corners = _outermost_corners(pixels)
    following = np.roll(corners, -1, 0)
    sides = np.hypot(*(corners - following).T)
    between = _between(corners, following, pixels.shape)
    fills = (between & pixels).sum() >= _FOUR_SIDED * (between | pixels).sum()
    return bool(fills and sides.max() <= longest * sides.min())


def _outermost_corners(pixels: Pixels) -> Levels:
    """Row and column of the outermost pixels in four directions, turned so that they span the most."""
    points = np.argwhere(pixels).astype(np.float64)
    best, found = -1.0, points[:4]
    for turn in range(_TURNS):
        angles = [pi / 2 * (turn / _TURNS + quarter) for quarter in range(4)]
        corners = np.array([points[np.argmax(points @ (sin(angle), cos(angle)))] for angle in angles])
        following = np.roll(corners, -1, 0)
        area = abs(float((corners[:, 0] * following[:, 1] - corners[:, 1] * following[:, 0]).sum()))
        if area > best:
            best, found = area, corners
    return found


def _between(corners: Levels, following: Levels, shape: tuple[int, ...]) -> Pixels:
    """The pixels that lie on one side of all lines from a corner to the next."""
    rows, columns = np.indices(shape)
    sides = np.array(
        [
            (end[0] - start[0]) * (columns - start[1]) - (end[1] - start[1]) * (rows - start[0])
            for start, end in zip(corners, following, strict=True)
        ]
    )
    return np.all(sides >= 0, axis=0) | np.all(sides <= 0, axis=0)
