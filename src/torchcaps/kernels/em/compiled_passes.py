"""Rounds of EM routing over the windows of one sample, compiled for the processor.

The votes for one parent are cast when they are needed, in every round anew: four multiplications for each
number cost less than reading it from the second cache. `sample` is poses `[window, row, inner, child]` and
activations, `layer` matrices `[type, inner, column, child]` and offsets, `memory` that of one parent's votes,
as `[row, column, child]` and as `[pose, child]`.
"""

from math import exp, log, log1p, pi
from typing import no_type_check  # numba compiles no function that run-time shape checks have wrapped

import numpy as np

from ..compiling import compiled
from .compiled_rows import cast, measure, multiply, total, weigh, weigh_squares

LEAST_MASS = 1e-7


@compiled
@no_type_check
def fit_round(sample, layer, memory, costs, scales, coupling, parents):
    """Fits all parents to couplings, which become the scores of children under the new parents.

    `parents` are means, variances, masses and logits to fill; `scales` the temperature, the least variance
    and the even mass.
    """
    poses, active = sample
    means, variances, masses, logits = parents
    for window in range(len(poses)):
        for kind in range(len(layer[0])):
            cast(poses[window], layer[0][kind], layer[1], memory[0])
            row, mean, variance = coupling[window, kind], means[window, kind], variances[window, kind]
            multiply(active[window], row, row)
            mass = _fit_parent(memory[1], row, scales[1], mean, variance)
            cost = (len(mean) * costs[1][kind] + 0.5 * sum_of_logs(variance)) * mass / scales[2]
            masses[window, kind] = mass
            logits[window, kind] = scales[0] * (costs[0][kind] - cost)
            _score_children(memory[1], mean, variance, logits[window, kind], row)


@compiled
@no_type_check
def score_rounds(sample, layer, memory, parents, scores):
    """Fills the scores `[round, window, type, child]` of children under the parents of every round."""
    means, variances, _, logits = parents
    for window in range(len(sample[0])):
        for kind in range(len(layer[0])):
            cast(sample[0][window], layer[0][kind], layer[1], memory[0])
            for step in range(len(scores)):
                mean, variance = means[step, window, kind], variances[step, window, kind]
                logit = logits[step, window, kind]
                _score_children(memory[1], mean, variance, logit, scores[step, window, kind])


@compiled
@no_type_check
def _fit_parent(votes, weights, min_variance, mean, variance):
    """M-step of one parent: fills its mean and variance, and returns its mass."""
    mass = total(weights) + np.float32(LEAST_MASS)
    for number in range(len(votes)):
        centre = weigh(weights, votes[number]) / mass
        # around the mean, not E[v²]-E[v]²: that difference cancels for votes far from zero
        spread = weigh_squares(weights, votes[number], centre) / mass
        mean[number], variance[number] = centre, spread + np.float32(min_variance)
    return mass


@compiled
@no_type_check
def sum_of_logs(numbers):
    """From the logarithms of products of four, which no float32 numbers bring out of range in float64."""
    result, product = 0.0, 1.0
    for place in range(len(numbers)):
        product *= np.float64(numbers[place])
        if place % 4 == 3:
            result += log(product)
            product = 1.0
    return result + log(product)


@compiled
@no_type_check
def _score_children(votes, mean, variance, logit, scores):
    """E-step of one parent."""
    likely = min(logit, 0.0) - log1p(exp(-abs(logit)))  # the logarithm of its activation
    constant = likely - 0.5 * (len(variance) * log(2 * pi) + sum_of_logs(variance))
    measure(votes, mean, variance, np.float32(constant), scores)
