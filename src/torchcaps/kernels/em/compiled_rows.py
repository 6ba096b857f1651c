"""Operations of EM routing on the children of one window, compiled for the processor.

Children are the last axis of every array, and the innermost loop runs over them. The votes for one parent are
`[pose, child]`: some kilobytes, which stay in the first cache.
"""

from typing import no_type_check  # numba compiles no function that run-time shape checks have wrapped

import numpy as np

from ..compiled_exponential import exponentiate
from ..compiling import compiled, compiled_sums

_ZERO = np.float32(0)
_LEAST = np.finfo(np.float32).min


@compiled
@no_type_check
def cast(poses, matrices, offsets, votes):
    """Fills the votes for one parent: `[row, column, child]`, from `[row, inner, child]` and its matrices.

    Four products are added at a time: memory is read and written less often for a sum of them.
    """
    rows, inner, children = poses.shape
    columns, whole = matrices.shape[1], inner // 4 * 4
    for row in range(rows):
        for column in range(columns):
            for child in range(children):
                votes[row, column, child] = offsets[row, column, child]
            for k in range(0, whole, 4):
                for child in range(children):
                    votes[row, column, child] += (
                        poses[row, k, child] * matrices[k, column, child]
                        + poses[row, k + 1, child] * matrices[k + 1, column, child]
                        + poses[row, k + 2, child] * matrices[k + 2, column, child]
                        + poses[row, k + 3, child] * matrices[k + 3, column, child]
                    )
            for k in range(whole, inner):
                for child in range(children):
                    votes[row, column, child] += poses[row, k, child] * matrices[k, column, child]


@compiled_sums
@no_type_check
def total(values):
    """The sum over children."""
    result = _ZERO
    for child in range(len(values)):
        result += values[child]
    return result


@compiled_sums
@no_type_check
def weigh(weights, values):
    """The sum over children of weighed values."""
    result = _ZERO
    for child in range(len(values)):
        result += weights[child] * values[child]
    return result


@compiled_sums
@no_type_check
def weigh_squares(weights, values, mean):
    """The sum over children of weighed squared distances from `mean`."""
    result = _ZERO
    for child in range(len(values)):
        away = values[child] - mean
        result += weights[child] * (away * away)
    return result


@compiled
@no_type_check
def multiply(factor, values, out):
    """Products of two rows."""
    for child in range(len(out)):
        out[child] = factor[child] * values[child]


@compiled
@no_type_check
def measure(votes, mean, variance, constant, scores):
    """Fills the logarithm of each child's density under a parent."""
    for child in range(len(scores)):
        scores[child] = _ZERO
    for number in range(len(votes)):
        vote, centre, weight = votes[number], mean[number], np.float32(1) / variance[number]
        for child in range(len(scores)):
            away = vote[child] - centre
            scores[child] += weight * (away * away)
    for child in range(len(scores)):
        scores[child] = constant - np.float32(0.5) * scores[child]


@compiled
@no_type_check
def divide(scores, place, highest, sums, row):
    """Turns scores `[window, type, child]` into couplings: they sum to one over all places of a child.

    `place[window, child]` numbers the child that stands there; `highest` and `sums` are memory for a number
    of each, `row` for one of each child of a window.
    """
    windows, types, children = scores.shape
    for spot in range(len(highest)):
        highest[spot], sums[spot] = _LEAST, _ZERO
    for window in range(windows):
        _note_highest(scores[window], place[window], row, highest)
    for window in range(windows):
        _gather(highest, place[window], row)
        _subtract_and_exponentiate(scores[window], row)
        _add_to(row, place[window], sums)
    for window in range(windows):
        _gather(sums, place[window], row)
        for child in range(children):
            row[child] = np.float32(1) / row[child]
        for kind in range(types):
            multiply(row, scores[window, kind], scores[window, kind])


@compiled
@no_type_check
def _note_highest(scores, place, row, highest):
    for child in range(len(row)):
        row[child] = _LEAST
    for kind in range(len(scores)):
        for child in range(len(row)):
            row[child] = scores[kind, child] if scores[kind, child] > row[child] else row[child]
    for child in range(len(row)):
        spot = place[child]
        highest[spot] = row[child] if row[child] > highest[spot] else highest[spot]


@compiled
@no_type_check
def _subtract_and_exponentiate(scores, row):
    """Exponentials of scores less `row`, in their place; `row` becomes their sums over types."""
    for kind in range(len(scores)):
        score = scores[kind]
        for child in range(len(row)):
            score[child] -= row[child]
        exponentiate(score, len(row))
    for child in range(len(row)):
        row[child] = _ZERO
    for kind in range(len(scores)):
        score = scores[kind]
        for child in range(len(row)):
            row[child] += score[child]


@compiled
@no_type_check
def compete(values, place, sums):
    """Sums of `[window, child]` over all places of a child, in the place of each."""
    for spot in range(len(sums)):
        sums[spot] = _ZERO
    for window in range(len(values)):
        _add_to(values[window], place[window], sums)
    for window in range(len(values)):
        _gather(sums, place[window], values[window])


@compiled
@no_type_check
def _add_to(row, place, on_map):
    for child in range(len(row)):
        on_map[place[child]] += row[child]


@compiled
@no_type_check
def _gather(on_map, place, row):
    for child in range(len(row)):
        row[child] = on_map[place[child]]
