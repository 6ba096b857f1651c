"""The backward pass of EM routing over the windows of one sample, compiled for the processor.

`sample`, `layer` and `memory` are those of `compiled_passes.py`. `walk` holds what the rounds leave for the
last pass, which sums the gradient of a vote over all rounds and takes it to poses and matrices: couplings
and, after their round, couplings times activations; gradients of scores, both `[round, window, type, child]`;
and three factors of each number of a parent, `[round, window, type, 3, pose]`.
"""

from math import exp
from typing import no_type_check  # numba compiles no function that run-time shape checks have wrapped

import numpy as np

from ..compiling import compiled
from .compiled_backward_rows import (
    add_product,
    add_pull,
    add_vote_grads,
    pull,
    through_matrices,
    through_poses,
)
from .compiled_passes import LEAST_MASS, sum_of_logs
from .compiled_rows import cast, multiply, total


@compiled
@no_type_check
def differentiate_round(step, sample, layer, memory, scales, parents, grads, walk, results):
    """Fills the gradients of one round's weights and factors, adds to those of activations and costs.

    `results` are the gradients of weights `[window, type, child]`, their sums over types times couplings, and
    the gradients of both costs; `scales` those of a forward pass and the vote cost.
    """
    poses, active = sample
    couplings, grad_scores, factors = walk
    for window in range(len(poses)):
        for kind in range(len(layer[0])):
            cast(poses[window], layer[0][kind], layer[1], memory[0])
            row, grad_share = couplings[step, window, kind], results[0][window, kind]
            place, grad_score = (step, window, kind), grad_scores[step, window, kind]
            factor = factors[step, window, kind]
            grad_mass = _differentiate_parent(
                place, memory[1], scales, parents, grads, grad_score, factor, results[2]
            )
            for child in range(len(row)):
                grad_share[child] = grad_mass
            for number in range(len(memory[1])):
                mean = parents[0][step, window, kind, number]
                add_pull(memory[1][number], mean, factor[0, number], factor[1, number], grad_share)
            add_product(row, grad_share, results[1][window])
            multiply(active[window], row, row)


@compiled
@no_type_check
def _differentiate_parent(place, votes, scales, parents, grads, grad_score, factor, grad_costs):
    """Fills the factors of votes' gradients by way of a parent's round; returns the gradient of its mass.

    From `grad_score` of the next round's couplings or, in the last round, from `grads` of mean and logit.
    """
    step, window, kind = place
    temperatures, min_variance, even_mass, vote_cost = scales
    mean, variance = parents[0][step, window, kind], parents[1][step, window, kind]
    mass, logit = np.float64(parents[2][step, window, kind]), np.float64(parents[3][step, window, kind])
    is_last, pose = step == len(temperatures) - 1, len(votes)
    grad_scores = np.float64(total(grad_score))
    grad_logit = np.float64(grads[1][window, kind]) if is_last else grad_scores / (1 + exp(logit))
    tempered = temperatures[step] * grad_logit
    grad_cost = -tempered / even_mass
    grad_costs[0, kind] += tempered
    grad_costs[1, kind] += grad_cost * mass * pose
    grad_mass = grad_cost * (pose * vote_cost[kind] + 0.5 * sum_of_logs(variance))
    for number in range(pose):
        spread = np.float64(variance[number])
        grad_mean, grad_variance = np.float64(grads[0][window, kind, number]), 0.0
        if not is_last:
            towards, around = pull(grad_score, votes[number], mean[number])
            grad_mean = towards / spread
            grad_variance = 0.5 * (around / spread - grad_scores) / spread
        grad_variance += 0.5 * grad_cost * mass / spread
        # shares sum to a little less than one
        grad_mean -= 2 * grad_variance * mean[number] * (LEAST_MASS / mass)
        factor[0, number], factor[1, number] = grad_variance / mass, grad_mean / mass
        factor[2, number] = 1 / spread
        grad_mass -= factor[0, number] * (spread - min_variance)
    return np.float32(grad_mass)


@compiled
@no_type_check
def differentiate_scores(weights, grad_shares, means, grad_scores):
    """Fills gradients of scores `[window, type, child]`, from those of weights and their means."""
    windows, types, children = weights.shape
    for window in range(windows):
        for kind in range(types):
            for child in range(children):
                above_mean = grad_shares[window, kind, child] - means[window, child]
                grad_scores[window, kind, child] = above_mean * weights[window, kind, child]


@compiled
@no_type_check
def through_votes(sample, layer, memory, grad_memory, means, walk, results):
    """Adds to gradients of poses and matrices, which lie as those do, by way of that of the votes."""
    poses, _ = sample
    weights, grad_scores, factors = walk
    for window in range(len(poses)):
        for kind in range(len(layer[0])):
            cast(poses[window], layer[0][kind], layer[1], memory[0])
            for number in range(len(grad_memory[1])):
                for child in range(weights.shape[3]):
                    grad_memory[1][number, child] = 0
            for step in range(len(weights)):
                add_vote_grads(
                    memory[1],
                    means[step, window, kind],
                    factors[step, window, kind],
                    weights[step, window, kind],
                    grad_scores[step, window, kind],
                    grad_memory[1],
                )
            through_matrices(grad_memory[0], layer[0][kind], results[0][window])
            through_poses(grad_memory[0], poses[window], results[1][kind])
