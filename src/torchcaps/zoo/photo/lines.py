"""Lines that run over all of a sheet: those of ruled and squared paper."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .marks import widened
from .size import Levels, resized, smaller, strongest_within

_SEARCHED = 256  # longest side in which lines are looked for
_FAINT = 0.15  # share of the strongest ink below which there is none
_GRAIN = 4.5  # times the median deviation of the paper: most of its grain is weaker
_WIDEST = 4  # pixels there that a line is wide at most
_STEEPEST = 0.7  # pixels that it rises to a pixel along: 35 degrees
_SLOPES = 181  # that are tried: they part by a pixel and a half at the end of a line
_STEP = 4  # of the columns in which lines are looked for
_SHORTEST = 24  # pixels that it runs over the sheet
_COVERED = 0.9  # share of these that are ink
_SPARE = 1.5  # times the usual width, where the ink on a line is no stroke
_Pixels = NDArray[np.bool_]


def without_lines(ink: Levels, known: _Pixels) -> tuple[Levels, bool]:
    """Ink without the lines of the paper, and whether there are any.

    Lines may rise by up to 35 degrees and need not be parallel. Strokes that cross them stay.

    Args:
        ink: How far each pixel is from the paper.
        known: The pixels that the sheet covers.
    """
    across = _without_rows(ink, known)
    down = _without_rows(across.T, known.T).T
    return down, down is not ink


def _without_rows(ink: Levels, known: _Pixels) -> Levels:
    small, seen = smaller(ink, _SEARCHED), smaller(known.astype(np.float64), _SEARCHED) >= 0.5
    paper, full = np.percentile(small, (50, 99.9))
    grain = float(np.median(np.abs(small - paper)))
    least = paper + max(_FAINT * (full - paper), _GRAIN * grain)
    is_thin = _thin(small >= least)
    lines = _lines(widened(is_thin) & seen, seen)
    if not lines.any():
        return ink
    strongest = strongest_within(ink, _SEARCHED)
    level = float(np.median(strongest[lines & is_thin]))
    near = resized(widened(lines).astype(np.float64), (ink.shape[1], ink.shape[0])) > 0
    return np.where(_runs_on(near, ink >= level / 2), 0.0, ink)


def _thin(is_ink: _Pixels) -> _Pixels:
    """The ink in columns of at most a few pixels."""
    rows = len(is_ink)
    framed = np.pad(is_ink, ((_WIDEST, _WIDEST), (0, 0)))
    long = np.all([framed[shift : shift + rows + _WIDEST] for shift in range(_WIDEST + 1)], axis=0)
    within = np.any([long[shift : shift + rows] for shift in range(_WIDEST + 1)], axis=0)
    return is_ink & ~within


def _lines(is_ink: _Pixels, seen: _Pixels) -> _Pixels:
    """The pixels on straight ways from one edge of the sheet to the other that are ink nearly throughout."""
    on_way = np.zeros_like(is_ink)
    if is_ink.any(0).sum() < _COVERED * seen.any(0).sum():
        return on_way
    rise = np.linspace(-_STEEPEST, _STEEPEST, _SLOPES)
    length = _sums(seen, rise)
    slopes, starts = np.nonzero((length >= _SHORTEST / _STEP) & (_sums(is_ink, rise) >= _COVERED * length))
    columns = np.arange(is_ink.shape[1])
    rows = starts[:, None] - _reach(is_ink) + np.rint(rise[slopes][:, None] * columns).astype(np.int64)
    which, where = np.nonzero((rows >= 0) & (rows < len(is_ink)))
    on_way[rows[which, where], where] = True
    return on_way & seen


def _sums(pixels: _Pixels, rise: Levels) -> NDArray[np.int64]:
    """How many of the pixels lie on a way, by its slope and the row in which it starts."""
    rows, columns = np.nonzero(pixels[:, ::_STEP])
    reach = _reach(pixels)
    starts = rows + reach - np.rint(rise[:, None] * (_STEP * columns)).astype(np.int64)
    height = len(pixels) + 2 * reach
    places = starts + height * np.arange(len(rise))[:, None]
    return np.bincount(places.ravel(), minlength=height * len(rise)).reshape(len(rise), height)


def _reach(pixels: _Pixels) -> int:
    return int(_STEEPEST * pixels.shape[1]) + 1


def _runs_on(near: _Pixels, is_ink: _Pixels) -> _Pixels:
    """The ink near lines, column by column, where it is not wider than a line; and its blurred edges."""
    framed = np.pad(is_ink, ((1, 1), (0, 0))).T.ravel()
    starts, ends = (np.flatnonzero(framed[1:] != framed[:-1]) + 1).reshape(-1, 2).T
    met = np.cumsum(np.pad(near, ((1, 1), (0, 0))).T.ravel())
    is_near, widths = met[ends - 1] > met[starts - 1], ends - starts
    usual = float(np.median(widths[is_near]))
    gone = is_near & (widths <= _SPARE * usual + 1)
    edge = 1 + int(usual) // 2
    change = np.zeros(len(framed) + 1, dtype=np.int64)
    np.add.at(change, np.maximum(starts[gone] - edge, 0), 1)
    np.add.at(change, np.minimum(ends[gone] + edge, len(framed)), -1)
    stays = np.zeros(len(framed) + 1, dtype=np.int64)
    np.add.at(stays, starts[~gone], 1)
    np.add.at(stays, ends[~gone], -1)
    erased = (np.cumsum(change) > 0) & (np.cumsum(stays) == 0)
    return erased[:-1].reshape(is_ink.shape[1], -1).T[1:-1]
