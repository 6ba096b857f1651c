"""A sheet of paper that lies whole in a photograph, with a table all around it."""

from __future__ import annotations

from math import cos, pi, sin

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from .marks import label_marks, widened

_LEAST, _MOST = 0.04, 0.95  # share of the photograph that a sheet covers
_FOUR_SIDED = 0.88  # of a shape and the quadrilateral in it, the share that is in both; of a digit, under 0.8
_OWN = 0.5  # share of a sheet that is as bright as paper; the rest are strokes
_LONGEST_SIDE = 4.0  # times the shortest one: a stroke is longer
_LEAST_STEP = 20.0  # levels between the sheet and what lies beside it
_LINE = 2  # half of the pixels of the working size that a ruled line is wide at most
_MARGIN = 3  # pixels of the working size at the edge of a sheet, which its shadow blurs
_TURNS = 18  # angles in which corners are looked for
_Levels = NDArray[np.float64]
_Pixels = NDArray[np.bool_]


def find_sheet(levels: _Levels) -> _Pixels | None:
    """The pixels of a bright sheet with four sides that touches no edge of the picture, without its rim.

    There is none where the brightest large part of a picture has another shape, or nothing on it.
    """
    is_bright = levels > _threshold(levels)
    labels = label_marks(_narrowed(_widened_by(is_bright, _LINE), _LINE))  # lines do not part a sheet
    sizes = np.bincount(labels.ravel())
    if len(sizes) < 2:
        return None
    is_paper = labels == 1 + int(sizes[1:].argmax())
    sheet = _without_holes(is_paper)
    if not _is_sheet(sheet, is_paper):
        return None
    inside = _narrowed(sheet, _MARGIN)
    if not inside.any():
        return None
    tone = np.median(levels[inside])
    has_step = tone - np.median(levels[~sheet]) >= _LEAST_STEP
    return inside if has_step and tone - levels[inside].min() >= _LEAST_STEP else None


def fill_around(levels: _Levels, known: _Pixels) -> _Levels:
    """The levels with those that are not known drawn on from the known ones beside them."""
    if known.all() or min(levels.shape) < 2:
        return np.where(known, levels, levels[known].mean() if known.any() else 0.0)
    weight = _halved(known.astype(np.float64))
    coarse = _halved(np.where(known, levels, 0.0)) / np.maximum(weight, 1e-6)
    coarse = fill_around(coarse, weight > 0)
    size = (levels.shape[1], levels.shape[0])
    wide = Image.fromarray(coarse.astype(np.float32)).resize(size, Image.Resampling.BILINEAR)
    return np.where(known, levels, np.asarray(wide, dtype=np.float64))


def _halved(levels: _Levels) -> _Levels:
    height, width = levels.shape
    even = np.pad(levels, ((0, height % 2), (0, width % 2)), mode="edge")
    return even.reshape(even.shape[0] // 2, 2, even.shape[1] // 2, 2).mean((1, 3))


def _threshold(levels: _Levels) -> float:
    """The level that parts bright from dark pixels best (Otsu 1979)."""
    counts, _ = np.histogram(levels, 256, (0, 256))
    below = np.cumsum(counts)[:-1]
    sums = np.cumsum(counts * np.arange(256))
    above = counts.sum() - below
    means = sums[:-1] / np.maximum(below, 1), (sums[-1] - sums[:-1]) / np.maximum(above, 1)
    return float(np.argmax(below * above * (means[1] - means[0]) ** 2)) + 0.5


def _without_holes(pixels: _Pixels) -> _Pixels:
    """The pixels and all that they surround."""
    labels = label_marks(np.pad(~pixels, 1, constant_values=True))
    return (labels != labels[0, 0])[1:-1, 1:-1]


def _is_sheet(sheet: _Pixels, is_paper: _Pixels) -> bool:
    touches_edge = sheet[0].any() or sheet[-1].any() or sheet[:, 0].any() or sheet[:, -1].any()
    if touches_edge or not _LEAST <= sheet.mean() <= _MOST or is_paper.sum() < _OWN * sheet.sum():
        return False
    corners = _outermost_corners(sheet)
    following = np.roll(corners, -1, 0)
    sides = np.hypot(*(corners - following).T)
    between = _between(corners, following, sheet.shape)
    is_four_sided = (between & sheet).sum() >= _FOUR_SIDED * (between | sheet).sum()
    return bool(is_four_sided and sides.max() <= _LONGEST_SIDE * sides.min())


def _outermost_corners(pixels: _Pixels) -> _Levels:
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


def _between(corners: _Levels, following: _Levels, shape: tuple[int, ...]) -> _Pixels:
    """The pixels that lie on one side of all lines from a corner to the next."""
    rows, columns = np.indices(shape)
    sides = np.array(
        [
            (end[0] - start[0]) * (columns - start[1]) - (end[1] - start[1]) * (rows - start[0])
            for start, end in zip(corners, following, strict=True)
        ]
    )
    return np.all(sides >= 0, axis=0) | np.all(sides <= 0, axis=0)


def _narrowed(pixels: _Pixels, by: int) -> _Pixels:
    return ~_widened_by(~pixels, by)


def _widened_by(pixels: _Pixels, by: int) -> _Pixels:
    for _ in range(by):
        pixels = widened(pixels)
    return pixels
