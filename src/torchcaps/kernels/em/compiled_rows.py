"""Operations of EM routing on the children of one window, compiled for the processor.

Children are the last axis of every array, and the innermost loop runs over them. The votes of one parent are
`[pose, child]`: some kilobytes, which stay in the first cache.

Numba keeps what it compiled of the files that import this one until those change: whoever changes this one, or
what it imports, removes `__pycache__` beside it.
"""

from typing import no_type_check  # numba compiles no function that run-time shape checks have wrapped

import numpy as np
from numba import njit

from ..compiled_exponential import exponentiate

_ZERO = np.float32(0)
_LEAST = np.finfo(np.float32).min
_compile = njit(nogil=True, cache=True, fastmath={"contract"}, error_model="numpy")
_compile_sums = njit(nogil=True, cache=True, fastmath={"contract", "reassoc"}, error_model="numpy")


@_compile
@no_type_check
def turn(poses, turned):
    """Poses with the children innermost."""
    children, numbers = poses.shape
    for number in range(numbers):
        for child in range(children):
            turned[number, child] = poses[child, number]


@_compile
@no_type_check
def cast(poses, matrices, offsets, votes):
    """Fills the votes for one parent, from poses `[row, inner, child]` and its `[inner, column, child]`."""
    rows, inner, children = poses.shape
    columns = matrices.shape[1]
    for row in range(rows):
        for column in range(columns):
            vote = votes[row * columns + column]
            vote[:] = offsets[row * columns + column]
            for k in range(inner):
                pose, matrix = poses[row, k], matrices[k, column]
                for child in range(children):
                    vote[child] += pose[child] * matrix[child]


@_compile_sums
@no_type_check
def total(values):
    """The sum over children."""
    result = _ZERO
    for child in range(len(values)):
        result += values[child]
    return result


@_compile_sums
@no_type_check
def weigh(weights, values):
    """The sum over children of weighed values."""
    result = _ZERO
    for child in range(len(values)):
        result += weights[child] * values[child]
    return result


@_compile_sums
@no_type_check
def weigh_squares(weights, values, mean):
    """The sum over children of weighed squared distances from `mean`."""
    result = _ZERO
    for child in range(len(values)):
        away = values[child] - mean
        result += weights[child] * (away * away)
    return result


@_compile
@no_type_check
def multiply(factor, values, out):
    """Products of two rows."""
    for child in range(len(out)):
        out[child] = factor[child] * values[child]


@_compile
@no_type_check
def measure(votes, mean, precision, constant, scores):
    """Fills the logarithm of each child's density under a parent."""
    scores[:] = _ZERO
    for number in range(len(votes)):
        vote, centre, weight = votes[number], mean[number], precision[number]
        for child in range(len(scores)):
            away = vote[child] - centre
            scores[child] += weight * (away * away)
    for child in range(len(scores)):
        scores[child] = constant - np.float32(0.5) * scores[child]


@_compile
@no_type_check
def divide(scores, place, on_map):
    """Turns scores `[window, type, child]` into couplings: they sum to one over all places of a child.

    `place[window, child]` numbers the child that stands there; `on_map` is memory for a number of each.
    """
    windows, types, children = scores.shape
    row = np.empty(children, np.float32)
    on_map[:] = _LEAST
    for window in range(windows):
        row[:] = _LEAST
        for kind in range(types):
            score = scores[window, kind]
            for child in range(children):
                row[child] = score[child] if score[child] > row[child] else row[child]
        _raise_to(row, place[window], on_map)
    highest = on_map.copy()
    on_map[:] = _ZERO
    for window in range(windows):
        _gather(highest, place[window], row)
        _subtract_and_exponentiate(scores[window], row)
        _add_to(row, place[window], on_map)
    for window in range(windows):
        _gather(on_map, place[window], row)
        for child in range(children):
            row[child] = np.float32(1) / row[child]
        for kind in range(types):
            multiply(row, scores[window, kind], scores[window, kind])


@_compile
@no_type_check
def _subtract_and_exponentiate(scores, row):
    """Exponentials of scores less `row`, in their place; `row` becomes their sums over types."""
    for kind in range(len(scores)):
        score = scores[kind]
        for child in range(len(row)):
            score[child] -= row[child]
        exponentiate(score, len(row))
    row[:] = _ZERO
    for kind in range(len(scores)):
        score = scores[kind]
        for child in range(len(row)):
            row[child] += score[child]


@_compile
@no_type_check
def compete(values, place, on_map):
    """Sums of `[window, child]` over all places of a child, in the place of each."""
    on_map[:] = _ZERO
    for window in range(len(values)):
        _add_to(values[window], place[window], on_map)
    for window in range(len(values)):
        _gather(on_map, place[window], values[window])


@_compile
@no_type_check
def _raise_to(row, place, on_map):
    for child in range(len(row)):
        spot = place[child]
        on_map[spot] = row[child] if row[child] > on_map[spot] else on_map[spot]


@_compile
@no_type_check
def _add_to(row, place, on_map):
    for child in range(len(row)):
        on_map[place[child]] += row[child]


@_compile
@no_type_check
def _gather(on_map, place, row):
    for child in range(len(row)):
        row[child] = on_map[place[child]]
