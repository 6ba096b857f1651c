"""Lines that run over all of a sheet: those of ruled and squared paper."""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from .marks import widened, widened_by
from .size import Levels, Pixels, resized, smaller, strongest_within

_SEARCHED = 256  # longest side in which lines are looked for
_FAINT = 0.07  # share of the strongest ink below which there is none
_GRAIN = 4.5  # times the median deviation of the paper to its brighter side: most of its grain is weaker
_WIDEST = 4  # pixels there that a line is wide at most
_STEEPEST = 0.7  # pixels that it rises to a pixel along: 35 degrees
_SLOPES = 181  # that are tried: they part by a pixel and a half at the end of a line
_STEP = 4  # of the columns in which lines are looked for
_SHORTEST = 12  # pixels that it runs over the sheet
_COVERED = 0.9  # share of these that are ink
_STROKE = 1.75  # times the usual strength of lines, from which on ink on one is a stroke
_SHADED = 0.1  # share of the tone of the paper that is taken off where there are lines: wide strokes stay
_SPARE = 1.5  # times the usual width, where the ink on a line is no stroke
_Places = NDArray[np.int64]


def without_lines(ink: Levels, known: Pixels) -> tuple[Levels, bool]:
    """Ink without the lines of the paper and its shades between them, and whether there are any lines.

    Lines may rise by up to 35 degrees and need not be parallel. Strokes that cross them stay.

    Args:
        ink: How far each pixel is from the paper.
        known: The pixels that the sheet covers.
    """
    shades = resized(_shades(smaller(ink, _SEARCHED)), (ink.shape[1], ink.shape[0]))
    flat = ink - shades
    across = _of_rows(flat, known)
    down = _of_rows(np.where(across, 0.0, flat).T, known.T).T
    is_line = across | down
    if not is_line.any():
        return ink, False
    return np.where(is_line, 0.0, ink - np.minimum(shades, _SHADED)), True


def _shades(small: Levels) -> Levels:
    """What is wider and higher than a line: shades of the paper, which a shadow or a lens leaves."""
    framed = np.pad(small, 2 * _WIDEST, mode="symmetric")
    for axis, strongest in ((0, np.min), (1, np.min), (0, np.max), (1, np.max)):
        framed = strongest(sliding_window_view(framed, 2 * _WIDEST + 1, axis), -1)
    return framed


def _of_rows(ink: Levels, known: Pixels) -> Pixels:
    """The ink of lines that are more level than upright."""
    small, seen = smaller(ink, _SEARCHED), smaller(known.astype(np.float64), _SEARCHED) >= 0.5
    brighter, paper, full = np.percentile(small, (25, 50, 99.9))  # lines make nothing brighter
    least = paper + max(_FAINT * (full - paper), _GRAIN * (paper - brighter))
    is_thin = _thin(small >= least)
    lines = _lines(widened(is_thin) & seen, seen)
    if not (lines & is_thin).any():
        return np.zeros_like(known)
    level = np.median(strongest_within(ink, _SEARCHED)[lines & is_thin])
    near = resized(widened(lines).astype(np.float64), (ink.shape[1], ink.shape[0])) > 0
    return _runs_on(near, ink >= level / 2) & (ink < _STROKE * level)


def _thin(is_ink: Pixels) -> Pixels:
    """The ink in columns of at most a few pixels."""
    starts, ends = _runs(is_ink)
    return _drawn(starts, ends, ends - starts <= _WIDEST, is_ink.shape)


def _lines(is_ink: Pixels, seen: Pixels) -> Pixels:
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


def _sums(pixels: Pixels, rise: Levels) -> _Places:
    """How many of the pixels lie on a way, by its slope and the row in which it starts."""
    rows, columns = np.nonzero(pixels[:, ::_STEP])
    reach = _reach(pixels)
    starts = rows + reach - np.rint(rise[:, None] * (_STEP * columns)).astype(np.int64)
    height = len(pixels) + 2 * reach
    places = starts + height * np.arange(len(rise))[:, None]
    return np.bincount(places.ravel(), minlength=height * len(rise)).reshape(len(rise), height)


def _reach(pixels: Pixels) -> int:
    return int(_STEEPEST * pixels.shape[1]) + 1


def _runs_on(near: Pixels, is_ink: Pixels) -> Pixels:
    """The ink near lines, column by column, where it is not wider than a line; and its blurred edges."""
    starts, ends = _runs(is_ink)
    met = np.cumsum(_in_columns(near))
    widths, is_near = ends - starts, met[ends - 1] > met[starts - 1]
    usual = np.median(widths[is_near])
    line = _drawn(starts, ends, is_near & (widths <= _SPARE * usual + 1), is_ink.shape)
    return widened_by(line, 1 + int(usual) // 2) & ~(is_ink & ~line)


def _runs(pixels: Pixels) -> _Places:
    """Where runs of pixels start and where they have ended, in columns one after the other."""
    columns = _in_columns(pixels)
    return (np.flatnonzero(columns[1:] != columns[:-1]) + 1).reshape(-1, 2).T


def _drawn(starts: _Places, ends: _Places, which: Pixels, shape: tuple[int, ...]) -> Pixels:
    """The pixels of some of the runs."""
    change = np.zeros((shape[1], shape[0] + 2), dtype=np.int8)
    change.ravel()[starts[which]], change.ravel()[ends[which]] = 1, -1
    return np.cumsum(change, 1, dtype=np.int8)[:, 1:-1].T > 0


def _in_columns(pixels: Pixels) -> Pixels:
    """The columns one after the other, with a free place before and after each."""
    return np.pad(pixels, ((1, 1), (0, 0))).T.ravel()
