"""Operations of the backward pass of EM routing on the children of one window; as `compiled_rows.py`."""

from typing import no_type_check  # numba compiles no function that run-time shape checks have wrapped

import numpy as np

from ..compiling import compiled, compiled_sums

_TWO, _ZERO = np.float32(2), np.float32(0)


@compiled_sums
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


@compiled
@no_type_check
def add_pull(vote, mean, curve, slope, grad_share):
    """Adds the gradients of the children's weights, by way of mean and variance of one number."""
    for child in range(len(vote)):
        away = vote[child] - mean
        grad_share[child] += (curve * away + slope) * away


@compiled
@no_type_check
def add_vote_grads(votes, mean, factors, weights, grad_score, grad_votes):
    """Adds one round's gradients of the votes, by way of the children's weights and of their scores."""
    for number in range(len(votes)):
        vote, target, centre = votes[number], grad_votes[number], mean[number]
        curve, slope, precision = _TWO * factors[0, number], factors[1, number], factors[2, number]
        for child in range(len(weights)):
            away = vote[child] - centre
            along = away * curve + slope
            target[child] += weights[child] * along - grad_score[child] * (away * precision)


@compiled
@no_type_check
def through_matrices(grad_votes, matrices, grad_poses):
    """Adds to gradients of poses `[row, inner, child]`; four products at a time, as `cast`."""
    rows, inner, children = grad_poses.shape
    columns = matrices.shape[1]
    whole = columns // 4 * 4
    for row in range(rows):
        for k in range(inner):
            for column in range(0, whole, 4):
                for child in range(children):
                    grad_poses[row, k, child] += (
                        grad_votes[row, column, child] * matrices[k, column, child]
                        + grad_votes[row, column + 1, child] * matrices[k, column + 1, child]
                        + grad_votes[row, column + 2, child] * matrices[k, column + 2, child]
                        + grad_votes[row, column + 3, child] * matrices[k, column + 3, child]
                    )
            for column in range(whole, columns):
                for child in range(children):
                    grad_poses[row, k, child] += grad_votes[row, column, child] * matrices[k, column, child]


@compiled
@no_type_check
def through_poses(grad_votes, poses, grad_matrices):
    """Adds to gradients of one parent's matrices `[inner, column, child]`; four products at a time."""
    rows, inner, children = poses.shape
    columns, whole = grad_matrices.shape[1], rows // 4 * 4
    for k in range(inner):
        for column in range(columns):
            for row in range(0, whole, 4):
                for child in range(children):
                    grad_matrices[k, column, child] += (
                        grad_votes[row, column, child] * poses[row, k, child]
                        + grad_votes[row + 1, column, child] * poses[row + 1, k, child]
                        + grad_votes[row + 2, column, child] * poses[row + 2, k, child]
                        + grad_votes[row + 3, column, child] * poses[row + 3, k, child]
                    )
            for row in range(whole, rows):
                for child in range(children):
                    grad_matrices[k, column, child] += grad_votes[row, column, child] * poses[row, k, child]


@compiled
@no_type_check
def add_product(factor, values, out):
    """Adds products of two rows."""
    for child in range(len(out)):
        out[child] += factor[child] * values[child]
