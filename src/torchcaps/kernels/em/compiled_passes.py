"""EM routing of one sample after the other, compiled for the processor.

The votes for one parent are cast when they are needed, in every round anew: four multiplications for each
number cost less than reading it from the second cache. Of a sample the couplings of its rounds are kept.
"""

from math import exp, log, log1p, pi
from typing import no_type_check  # numba compiles no function that run-time shape checks have wrapped

import numpy as np
from numba import njit

from .compiled_rows import cast, divide, measure, multiply, total, turn, weigh, weigh_squares

LEAST_MASS = 1e-7
_compile = njit(nogil=True, cache=True, fastmath={"contract"}, error_model="numpy")


@_compile
@no_type_check
def fit_samples(children, layer, costs, scales, state, samples):
    """Fills what each round knows of the parents of these samples, first and last, the last excluded.

    `children` are poses and activations; `layer` their matrices, offsets and places; `scales` the
    temperatures, the least variance and the even mass; `state` means, variances, masses and logits.
    """
    matrices, offsets, place = layer
    means, variances, masses, logits = state
    rounds, windows = len(scales[0]), len(place)
    for sample in range(samples[0], samples[1]):
        first = sample * windows
        poses, active = load(children, first, matrices, place)
        coupling = even_split(place, len(matrices))
        on_map = np.empty(place.max() + 1, np.float32)
        votes = np.empty((means.shape[3], place.shape[1]), np.float32)
        for step in range(rounds):
            for window in range(windows):
                parents = first + window
                fitted = means[step, parents], variances[step, parents], masses[step, parents]
                for kind in range(len(matrices)):
                    cast(poses[window], matrices[kind], offsets, votes)
                    row = coupling[window, kind]
                    multiply(active[window], row, row)
                    cost = _fit_parent(votes, row, costs[1][kind], scales[1], kind, fitted)
                    logit = scales[0][step] * (costs[0][kind] - cost / scales[2])
                    logits[step, parents, kind] = logit
                    if step < rounds - 1:
                        score_children(votes, fitted[0][kind], fitted[1][kind], logits[step, parents, kind], row)
            if step < rounds - 1:
                divide(coupling, place, on_map)


@_compile
@no_type_check
def load(children, first, matrices, place):
    """Poses `[window, row, inner, child]` and activations of a sample; children are added that are absent."""
    windows, padded = place.shape
    inner, numbers = matrices.shape[1], children[0].shape[2]
    poses = np.zeros((windows, numbers, padded), np.float32)
    active = np.zeros((windows, padded), np.float32)
    for window in range(windows):
        turn(children[0][first + window], poses[window])
        active[window, : children[1].shape[1]] = children[1][first + window]
    return poses.reshape(windows, numbers // inner, inner, padded), active


@_compile
@no_type_check
def even_split(place, types):
    """Couplings `[window, type, child]` of the first round."""
    windows, children = place.shape
    met = np.zeros(place.max() + 1, np.float32)
    for window in range(windows):
        for child in range(children):
            met[place[window, child]] += np.float32(1)
    split = np.empty((windows, types, children), np.float32)
    for window in range(windows):
        for child in range(children):
            split[window, :, child] = np.float32(1) / (types * met[place[window, child]])
    return split


@_compile
@no_type_check
def _fit_parent(votes, weights, vote_cost, min_variance, kind, fitted):
    """M-step of one parent: fills its mean, variance and mass; its cost."""
    mass = total(weights) + np.float32(LEAST_MASS)
    mean, variance = fitted[0][kind], fitted[1][kind]
    log_spread = 0.0
    for number in range(len(votes)):
        centre = weigh(weights, votes[number]) / mass
        # around the mean, not E[v²]-E[v]²: that difference cancels for votes far from zero
        spread = weigh_squares(weights, votes[number], centre) / mass + np.float32(min_variance)
        mean[number], variance[number] = centre, spread
        log_spread += log(spread)
    fitted[2][kind] = mass
    return (len(votes) * vote_cost + 0.5 * log_spread) * mass


@_compile
@no_type_check
def score_children(votes, mean, variance, logit, scores):
    """E-step of one parent."""
    precision = np.float32(1) / variance
    constant = min(logit, 0.0) - log1p(exp(-abs(logit)))
    for number in range(len(variance)):
        constant -= 0.5 * log(2 * pi * variance[number])
    measure(votes, mean, precision, np.float32(constant), scores)
