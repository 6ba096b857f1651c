"""Operations of the backward pass of EM routing on the children of one window; as `compiled_rows.py`."""

from typing import no_type_check  # numba compiles no function that run-time shape checks have wrapped

import numpy as np
from numba import njit

_TWO, _ZERO = np.float32(2), np.float32(0)
_compile = njit(nogil=True, cache=True, fastmath={"contract"}, error_model="numpy")
_compile_sums = njit(nogil=True, cache=True, fastmath={"contract", "reassoc"}, error_model="numpy")


@_compile_sums
@no_type_check
def pull(weights, values, mean):
    """Sums over children of weighed distances from `mean`, and of their weighed squares."""
    towards, squares = _ZERO, _ZERO
    for child in range(len(values)):
        away = values[child] - mean
        weighed = weights[child] * away
        towards += weighed
        squares += weighed * away
    return towards, squares


@_compile
@no_type_check
def add_pull(vote, mean, curve, slope, grad_share):
    """Adds what mean and variance of one number ask of the children's weights."""
    for child in range(len(vote)):
        away = vote[child] - mean
        grad_share[child] += (curve * away + slope) * away


@_compile
@no_type_check
def ask_of_votes(votes, mean, factors, rows, grad_votes):
    """Adds what one round asks of the votes; `rows` are the children's weights and the scores' gradients."""
    weights, grad_score = rows
    for number in range(len(votes)):
        vote, target, centre = votes[number], grad_votes[number], mean[number]
        curve, slope, precision = _TWO * factors[0, number], factors[1, number], factors[2, number]
        for child in range(len(weights)):
            away = vote[child] - centre
            along = away * curve + slope
            target[child] += weights[child] * along - grad_score[child] * (away * precision)


@_compile
@no_type_check
def through_matrices(grad_votes, poses, matrices, grad_poses, grad_matrices):
    """Adds to gradients of poses `[row, inner, child]` and of one parent's matrices."""
    rows, inner, children = poses.shape
    columns = matrices.shape[1]
    for row in range(rows):
        for k in range(inner):
            pose, grad_pose = poses[row, k], grad_poses[row, k]
            for column in range(columns):
                grad, matrix = grad_votes[row * columns + column], matrices[k, column]
                grad_matrix = grad_matrices[k, column]
                for child in range(children):
                    grad_pose[child] += grad[child] * matrix[child]
                    grad_matrix[child] += grad[child] * pose[child]


@_compile
@no_type_check
def add_product(factor, values, out):
    """Adds products of two rows."""
    for child in range(len(out)):
        out[child] += factor[child] * values[child]


@_compile
@no_type_check
def turn_back(turned, poses):
    """Poses with their numbers innermost."""
    children, numbers = poses.shape
    for child in range(children):
        for number in range(numbers):
            poses[child, number] = turned[number, child]
