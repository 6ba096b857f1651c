"""A sheet of paper in a photograph, with a table around it."""

from __future__ import annotations

import numpy as np
from PIL import Image

from .four_sides import is_four_sided, without_holes
from .marks import label_marks, narrowed, widened_by
from .size import Levels, Pixels

_LEAST, _MOST = 0.04, 0.95  # share of the photograph that a sheet covers
_OWN = 0.5  # share of a sheet that is as bright as paper; the rest are strokes
_LEAST_STEP = 20.0  # levels between the sheet and what lies beside it
_BLACK = 0.25  # share of its tone that the lid of a scanner has at most; a shadow leaves more
_LONGEST_EMPTY = 2.0  # times the shortest side of a sheet on which nothing is seen at the working size
_LINE = 2  # half of the pixels of the working size that a ruled line is wide at most
_MARGIN = 3  # pixels of the working size at the edge of a sheet, which its shadow blurs


def find_sheet(levels: Levels) -> Pixels | None:
    """The pixels of a bright sheet with four sides, without its rim.

    It may touch one edge of the picture, or three where what lies beside it is black.

    There is none where the brightest large part of a picture has another shape, or nothing on it and is so
    long that it may be a stroke.
    """
    is_bright = levels > threshold(levels)
    labels = label_marks(narrowed(widened_by(is_bright, _LINE), _LINE))  # lines do not part a sheet
    sizes = np.bincount(labels.ravel())
    if len(sizes) < 2:
        return None
    is_paper = labels == 1 + int(sizes[1:].argmax())
    sheet = without_holes(is_paper)
    inside = narrowed(sheet, _MARGIN)
    if not inside.any() or sheet.all():
        return None
    tone, beside = np.median(levels[inside]), np.median(levels[~sheet])
    if not _is_sheet(sheet, is_paper, 3 if beside <= _BLACK * tone else 1):
        return None
    has_step = tone - beside >= _LEAST_STEP
    has_ink = tone - levels[inside].min() >= _LEAST_STEP
    return inside if has_step and (has_ink or is_four_sided(sheet, _LONGEST_EMPTY)) else None


def fill_around(levels: Levels, known: Pixels) -> Levels:
    """The levels with those that are not known drawn on from the known ones beside them."""
    if known.all() or min(levels.shape) < 2:
        return np.where(known, levels, levels[known].mean() if known.any() else 0.0)
    weight = _halved(known.astype(np.float64))
    coarse = _halved(np.where(known, levels, 0.0)) / np.maximum(weight, 1e-6)
    coarse = fill_around(coarse, weight > 0)
    size = (levels.shape[1], levels.shape[0])
    wide = Image.fromarray(coarse.astype(np.float32)).resize(size, Image.Resampling.BILINEAR)
    return np.where(known, levels, np.asarray(wide, dtype=np.float64))


def threshold(levels: Levels) -> float:
    """The level that parts bright from dark pixels best (Otsu 1979)."""
    counts, _ = np.histogram(levels, 256, (0, 256))
    below = np.cumsum(counts)[:-1]
    sums = np.cumsum(counts * np.arange(256))
    above = counts.sum() - below
    means = sums[:-1] / np.maximum(below, 1), (sums[-1] - sums[:-1]) / np.maximum(above, 1)
    return float(np.argmax(below * above * (means[1] - means[0]) ** 2)) + 0.5


def _halved(levels: Levels) -> Levels:
    height, width = levels.shape
    even = np.pad(levels, ((0, height % 2), (0, width % 2)), mode="edge")
    rows = even[::2] + even[1::2]
    return (rows[:, ::2] + rows[:, 1::2]) / 4


def _is_sheet(sheet: Pixels, is_paper: Pixels, most_edges: int = 1) -> bool:
    edges = (sheet[0], sheet[-1], sheet[:, 0], sheet[:, -1])
    if sum(bool(edge.any()) for edge in edges) > most_edges:  # the bright side of a shadow meets two
        return False
    is_large = _LEAST <= sheet.mean() <= _MOST and is_paper.sum() >= _OWN * sheet.sum()
    return bool(is_large) and is_four_sided(sheet)
