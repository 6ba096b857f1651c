"""The filter compiled for the processor: two passes over the belief, with all sums taken on the way."""

from __future__ import annotations

from typing import no_type_check  # numba compiles no function that run-time shape checks have wrapped

import numba
import numpy as np
import torch
from numba import njit, prange
from numpy.typing import NDArray

from .backend import Evidence, Match, Moments
from .motion import Prediction, Taps, sources_of

_NO_MATCH, _FLOAT, _HALF, _SCALED, _CODED = 0, 1, 2, 3, 4
_KINDS = {"float32": _FLOAT, "float16": _HALF, "int8": _SCALED, "product": _CODED}
_HALF_SCALE = np.float32(2.0**112)  # moves the exponent of a half float to its place in a float


class CompiledBackend:
    """A belief in float32 on the processor; numba compiles the passes at their first use."""

    def __init__(self, threads: int | None = None) -> None:
        self._threads = threads or numba.config.NUMBA_NUM_THREADS
        self._belief = self._moved = np.empty((0, 0, 0), np.float32)
        self._filled: NDArray[np.bool_] = np.empty(0, np.bool_)

    def fill(self, belief: NDArray[np.floating]) -> None:
        """Take over a belief of (heading, row, column)."""
        self._belief = np.array(belief, np.float32, order="C")
        self._moved = np.zeros_like(self._belief)
        self._filled = np.asarray(self._belief.any(axis=(1, 2)))

    def read(self) -> NDArray[np.floating]:
        """A copy of the belief."""
        return self._belief.copy()

    def update(self, prediction: Prediction, evidence: Evidence, scale: float) -> Moments:
        """Move the belief times `scale` along a prediction, weigh it by the evidence, sum it up."""
        _use_threads(self._threads)
        wanted = sources_of(evidence.headings > 0, prediction.heading)
        moved = wanted & self._filled
        _move(
            self._belief,
            self._moved,
            *_single(prediction.x),
            *_single(prediction.y),
            np.float32(scale),
            np.flatnonzero(moved),
        )
        sums = _weigh(
            self._moved,
            self._belief,
            self._filled,
            moved,
            int(prediction.heading.first[0]),
            prediction.heading.weights[0].astype(np.float32),
            evidence.headings.astype(np.float32),
            *_matching(evidence.match),
        )
        mass, x, y, square, _ = sums.sum(1).T
        self._filled = mass > 0
        return Moments(mass, x, y, square, peak=float(sums[:, :, 4].max()))


def _use_threads(count: int) -> None:
    """Let the compiled passes use so many threads, and PyTorch as many as before.

    Both may share one OpenMP library, where numba's choice would become PyTorch's and change its rounding.
    """
    before = torch.get_num_threads()
    numba.set_num_threads(count)
    torch.set_num_threads(before)


def _single(taps: Taps) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    return taps.first, taps.weights.astype(np.float32)


def _matching(
    match: Match | None,
) -> tuple[int, NDArray[np.generic], NDArray[np.float32], NDArray[np.float32], NDArray[np.bool_]]:
    """The kind of matching, stored values, factors (groups, entries), weights and known cells, if not all."""
    every = np.empty((0, 0), np.bool_)
    if match is None:
        nothing = np.zeros((1, 1), np.float32)
        return _NO_MATCH, np.zeros((1, 1, 1, 1), np.uint8), nothing, nothing[0], every
    values = np.asarray(match.descriptors.values)
    # all forms pass as bytes, so that the passes are compiled once
    return (
        _KINDS[match.descriptors.book.storage],
        values.view(np.uint8),
        np.atleast_2d(match.tables),
        match.weights,
        every if match.descriptors.known is None else match.descriptors.known,
    )


@njit(fastmath=True, cache=True)
@no_type_check
def _add(target, factor, values):
    for column in range(len(target)):
        target[column] += factor * np.float32(values[column])


@njit(parallel=True, fastmath=True, cache=True)
@no_type_check
def _move(belief, moved, x_first, x_taps, y_first, y_taps, scale, active):
    """Shift and spread the active headings along x and y; a source row is read once.

    The loop is over them alone: headings behind a gate are neighbours, and would all fall to one thread.
    """
    _, rows, columns = belief.shape
    for index in prange(len(active)):
        heading = active[index]
        target = moved[heading]
        target[:] = 0
        spread = np.empty(columns, np.float32)
        for row in range(rows):
            _spread_row(belief[heading, row], spread, x_first[heading], x_taps[heading], scale)
            for k in range(y_taps.shape[1]):
                to, weight = row + y_first[heading] + k, y_taps[heading, k]
                if 0 <= to < rows:
                    _add(target[to], weight, spread)


@njit(fastmath=True, cache=True)
@no_type_check
def _spread_row(source, spread, first, taps, scale):
    """Shift and spread a row; what leaves it is lost."""
    spread[:] = 0
    columns = len(source)
    for k in range(len(taps)):
        offset, weight = first + k, taps[k] * scale
        for column in range(max(offset, 0), min(columns, columns + offset)):
            spread[column] += weight * source[column - offset]


@njit(parallel=True, fastmath=True, cache=True)
@no_type_check
def _weigh(moved, belief, filled, active, first, taps, weights, kind, stored, tables, likelihood, known):
    """Turn, weigh and sum the belief row by row; sums are (heading, row, [1, x, y, square, peak])."""
    headings, rows, columns = belief.shape
    sums = np.zeros((headings, rows, 5))
    for row in prange(rows):
        dots, bits = np.empty(columns, np.float32), np.empty(columns, np.uint32)
        for heading in range(headings):
            target = belief[heading, row]
            if filled[heading] or weights[heading] > 0:
                target[:] = 0
            if weights[heading] == 0:
                continue
            for k in range(len(taps)):
                source = (heading - first - k) % headings
                if active[source]:
                    _add(target, taps[k] * weights[heading], moved[source, row])
            if kind != _NO_MATCH:
                _dot(stored[heading, row], tables, kind, dots, bits)
                _look_up(likelihood, dots, target)
                _leave_out(known, row, target)
            _sum_row(target, row, sums[heading, row])
    return sums


@njit(fastmath=True, cache=True)
@no_type_check
def _dot(stored, tables, kind, dots, bits):
    """The dot product of each cell of a row with the image; numba has no half floats, so their bits move."""
    dots[:] = 0
    for part in range(stored.shape[0]):
        if kind == _CODED:
            for column in range(len(dots)):
                dots[column] += tables[part, stored[part, column]]
        elif kind == _SCALED:
            _add(dots, tables[0, part], stored[part].view(np.int8))
        elif kind == _FLOAT:
            _add(dots, tables[0, part], stored[part].view(np.float32))
        else:
            halves = stored[part].view(np.uint16)
            for column in range(len(dots)):
                half = np.uint32(halves[column])
                sign, rest = half & np.uint32(0x8000), half & np.uint32(0x7FFF)
                bits[column] = (sign << np.uint32(16)) | (rest << np.uint32(13))
            _add(dots, tables[0, part] * _HALF_SCALE, bits.view(np.float32))


@njit(fastmath=True, cache=True)
@no_type_check
def _look_up(likelihood, dots, target):
    """Multiply by the weight of each distance."""
    last = len(likelihood) - 1
    for column in range(len(dots)):
        square = min(max(np.float32(2) - np.float32(2) * dots[column], np.float32(0)), np.float32(4))
        place = np.sqrt(square) * np.float32(last / 2)
        # counted without a sign: a place that is no number, in a damaged map, stays inside the table too
        low = np.int32(min(np.uint32(np.int32(place)), np.uint32(last - 1)))
        part = place - np.float32(low)
        target[column] *= likelihood[low] + part * (likelihood[low + 1] - likelihood[low])


@njit(fastmath=True, cache=True)
@no_type_check
def _leave_out(known, row, target):
    if known.size:
        target *= known[row]


@njit(fastmath=True, cache=True)
@no_type_check
def _sum_row(target, row, sums):
    mass, along, square, peak = 0.0, 0.0, 0.0, np.float32(0)
    for column in range(len(target)):
        value = np.float64(target[column])
        mass += value
        along += value * column
        square += value * column * column
        peak = max(peak, target[column])
    sums[0], sums[1], sums[2], sums[3], sums[4] = mass, along, mass * row, square + mass * row * row, peak
