"""A photograph of a handwritten digit as MNIST has it: bright on black, 20 pixels, centred by its mass."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from torchcaps.core.errors import UserError

_SIDE, _INNER = 28, 20
_LEAST_CONTRAST = 20.0  # levels of 255 between ink and paper
_LEAST_INK = 0.02  # share of the ink's strongest row or column below which it counts as specks
_Levels = NDArray[np.float64]


class Prepared(NamedTuple):
    """The picture a network sees, and what was done to get it, in words."""

    picture: Image.Image
    words: str


def prepare_digit(picture: Image.Image) -> Prepared:
    """Find the digit in a scan or photograph of any size, and bring it to the form of MNIST.

    An image of 28x28 pixels with a black frame is taken as it is.
    """
    levels = np.asarray(picture.convert("L"), dtype=np.float64)
    if levels.shape == (_SIDE, _SIDE) and _frame(levels).max() < _LEAST_CONTRAST:
        return Prepared(picture.convert("L"), "taken as it is: 28x28 px on black")
    ink, is_inverted = _ink(levels)
    top, bottom, left, right = _box(ink)
    digit = ink[top:bottom, left:right]
    size = f"{right - left}x{bottom - top} of {levels.shape[1]}x{levels.shape[0]} px"
    steps = [
        "inverted (dark on bright)" if is_inverted else "not inverted (bright on dark)",
        f"cropped to the digit, {size}",
        f"scaled to {_INNER} px and centred by mass in {_SIDE}x{_SIDE}",
    ]
    return Prepared(_centred(digit), ", ".join(steps))


def _frame(levels: _Levels) -> _Levels:
    return np.concatenate([levels[0], levels[-1], levels[:, 0], levels[:, -1]])


def _ink(levels: _Levels) -> tuple[_Levels, bool]:
    """How much ink each pixel holds, 0 to 1, and whether it is darker than the paper."""
    above = levels - _paper(levels)
    darker, brighter = -float(np.percentile(above, 0.5)), float(np.percentile(above, 99.5))
    strength = max(darker, brighter)
    if strength < _LEAST_CONTRAST:
        raise UserError(
            "there is no digit to be seen: the picture is of one tone; take it with more contrast"
        )
    is_inverted = darker >= brighter
    ink = np.clip((-above if is_inverted else above) / strength, 0, 1)
    return np.where(ink < _threshold(ink) / 2, 0.0, ink), is_inverted


def _paper(levels: _Levels) -> _Levels:
    """The tone of the paper at each pixel: a plane through the frame, which a shadow may tilt."""
    planes: _Levels = np.indices(levels.shape).astype(np.float64)
    rows: _Levels = planes[0]
    columns: _Levels = planes[1]
    places = np.stack([_frame(rows), _frame(columns), np.ones_like(_frame(rows))], axis=1)
    slope = np.linalg.lstsq(places, _frame(levels), rcond=None)[0]
    return slope[0] * rows + slope[1] * columns + slope[2]


def _threshold(ink: _Levels) -> float:
    """Otsu's: the level that parts ink and paper with the largest variance between them."""
    counts, edges = np.histogram(ink, bins=128, range=(0, 1))
    middles = (edges[1:] + edges[:-1]) / 2
    below, weight = np.cumsum(counts), np.cumsum(counts * middles)
    above = below[-1] - below
    with np.errstate(divide="ignore", invalid="ignore"):
        between = below * above * (weight / below - (weight[-1] - weight) / above) ** 2
    return float(middles[int(np.nanargmax(between))])


def _box(ink: _Levels) -> tuple[int, int, int, int]:
    """Rows and columns that hold the digit; single specks of dust are no digit."""
    spans = []
    for axis in (1, 0):
        strength = ink.sum(axis)
        found = np.flatnonzero(strength > _LEAST_INK * strength.max())
        spans += [int(found[0]), int(found[-1]) + 1]
    return spans[0], spans[1], spans[2], spans[3]


def _centred(digit: _Levels) -> Image.Image:
    height, width = digit.shape
    scale = _INNER / max(height, width)
    size = (max(1, round(width * scale)), max(1, round(height * scale)))
    small = Image.fromarray((255 * digit).astype(np.uint8)).resize(
        size, Image.Resampling.BOX if scale < 1 else Image.Resampling.BILINEAR
    )
    levels = np.asarray(small, dtype=np.float64)
    levels = levels * (255 / levels.max())
    rows, columns = np.indices(levels.shape)
    centre = (float((rows * levels).sum() / levels.sum()), float((columns * levels).sum() / levels.sum()))
    canvas = np.zeros((_SIDE, _SIDE))
    places = [
        min(max(round((_SIDE - 1) / 2 - middle), 0), _SIDE - side)
        for middle, side in zip(centre, levels.shape, strict=True)
    ]
    canvas[places[0] : places[0] + levels.shape[0], places[1] : places[1] + levels.shape[1]] = levels
    return Image.fromarray(canvas.round().astype(np.uint8))
