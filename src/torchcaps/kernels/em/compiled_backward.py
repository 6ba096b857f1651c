"""The backward pass of EM routing of one sample after the other, compiled for the processor.

Couplings of all rounds are found again from the parents that each round knew. A last pass over the votes adds
what all rounds ask of a vote and takes it to poses and matrices.
"""

from math import exp, log
from typing import no_type_check  # numba compiles no function that run-time shape checks have wrapped

import numpy as np
from numba import njit

from .compiled_backward_rows import add_product, add_pull, ask_of_votes, pull, through_matrices, turn_back
from .compiled_passes import LEAST_MASS, even_split, load, score_children
from .compiled_rows import cast, compete, divide, multiply, total

_compile = njit(nogil=True, cache=True, fastmath={"contract"}, error_model="numpy")


@_compile
@no_type_check
def differentiate_samples(children, layer, scales, state, grads, targets, learned, samples):
    """Fills gradients of these samples' poses and activations; adds to those of matrices and costs.

    Arguments as in `fit_samples`; `scales` have the vote cost as well, `grads` are those of the last means and
    logits.
    """
    matrices, _, place = layer
    of_sample = np.empty_like(matrices)
    for sample in range(samples[0], samples[1]):
        first = sample * len(place)
        poses, active = load(children, first, matrices, place)
        couplings = _couplings(poses, layer, state, first)
        grad_scores = np.zeros_like(couplings)
        rounds, windows, types, _ = couplings.shape
        factors = np.empty((rounds, windows, types, 3, state[0].shape[3]), np.float32)
        walked = couplings, grad_scores, factors
        for step in range(rounds - 1, -1, -1):
            _differentiate_round(
                step, (poses, active, first), layer, scales, state, grads, walked, (targets[1], learned[1])
            )
        of_sample[:] = 0
        _through_votes((poses, active, first), layer, state[0], walked, targets[0], of_sample)
        learned[0][:] += of_sample


@_compile
@no_type_check
def _couplings(poses, layer, state, first):
    """Those of all rounds, `[round, window, type, child]`."""
    matrices, offsets, place = layer
    means, variances, _, logits = state
    rounds, _, types, pose = means.shape
    windows, children = place.shape
    votes, on_map = np.empty((pose, children), np.float32), np.empty(place.max() + 1, np.float32)
    found = np.empty((rounds, windows, types, children), np.float32)
    found[0] = even_split(place, types)
    for window in range(windows):
        parents = first + window
        for kind in range(types):
            cast(poses[window], matrices[kind], offsets, votes)
            for step in range(rounds - 1):
                mean, variance = means[step, parents, kind], variances[step, parents, kind]
                logit = logits[step, parents, kind]
                score_children(votes, mean, variance, logit, found[step + 1, window, kind])
    for step in range(1, rounds):
        divide(found[step], place, on_map)
    return found


@_compile
@no_type_check
def _differentiate_round(step, sample, layer, scales, state, grads, walked, results):
    """One round of a sample: its factors, its couplings times activations, gradients of scores before it."""
    poses, active, first = sample
    matrices, offsets, place = layer
    couplings, grad_scores, factors = walked
    windows, types, children = couplings.shape[1:]
    votes = np.empty((state[0].shape[3], children), np.float32)
    grad_shares, means = np.empty((windows, types, children), np.float32), np.zeros_like(active)
    for window in range(windows):
        for kind in range(types):
            cast(poses[window], matrices[kind], offsets, votes)
            grad_share, factor = grad_shares[window, kind], factors[step, window, kind]
            parent, grad_score = (step, first + window, kind), grad_scores[step, window, kind]
            _differentiate_parent(parent, votes, scales, state, grads, grad_score, (factor, grad_share, results[1]))
            add_product(couplings[step, window, kind], grad_share, means[window])
            multiply(active[window], couplings[step, window, kind], couplings[step, window, kind])
        _note(step, len(factors), means[window], results[0][first + window])
    if step > 0:
        compete(means, place, np.empty(place.max() + 1, np.float32))
        for window in range(windows):
            for kind in range(types):
                weights, target = couplings[step, window, kind], grad_scores[step - 1, window, kind]
                for child in range(children):
                    target[child] = (grad_shares[window, kind, child] - means[window, child]) * weights[child]


@_compile
@no_type_check
def _note(step, rounds, means, grad_active):
    """Adds to the gradient of a window's activations, which the last round fills."""
    for child in range(len(grad_active)):
        grad_active[child] = means[child] + (0 if step == rounds - 1 else grad_active[child])


@_compile
@no_type_check
def _differentiate_parent(parent, votes, scales, state, grads, grad_score, results):
    """What one round of a parent asks of the children's weights, and the factors of what it asks of votes.

    From `grad_score` of the next round's couplings or, in the last round, from `grads`.
    """
    step, place, kind = parent
    temperatures, min_variance, even_mass, vote_cost = scales
    mean, variance = state[0][step, place, kind], state[1][step, place, kind]
    mass, logit = np.float64(state[2][step, place, kind]), np.float64(state[3][step, place, kind])
    factor, grad_share, grad_costs = results
    is_last, pose = step == len(temperatures) - 1, len(votes)
    asked = np.float64(0) if is_last else np.float64(total(grad_score))
    grad_logit = np.float64(grads[1][place, kind]) if is_last else asked / (1 + exp(logit))
    tempered = temperatures[step] * grad_logit
    grad_cost = -tempered / even_mass
    grad_costs[0, kind] += tempered
    grad_costs[1, kind] += grad_cost * mass * pose
    log_spread, grad_mass = 0.0, 0.0
    for number in range(pose):
        centre, spread = np.float64(mean[number]), np.float64(variance[number])
        grad_mean, grad_variance = np.float64(grads[0][place, kind, number]), 0.0
        if not is_last:
            towards, squares = pull(grad_score, votes[number], mean[number])
            grad_mean = towards / spread
            grad_variance = 0.5 * (squares / spread - asked) / spread
        grad_variance += 0.5 * grad_cost * mass / spread
        grad_mean -= 2 * grad_variance * centre * (LEAST_MASS / mass)  # shares sum to a little less than one
        factor[0, number], factor[1, number] = grad_variance / mass, grad_mean / mass
        factor[2, number] = 1 / spread
        log_spread += log(spread)
        grad_mass -= grad_variance / mass * (spread - min_variance)
    grad_mass += grad_cost * (pose * vote_cost[kind] + 0.5 * log_spread)
    grad_share[:] = grad_mass
    for number in range(pose):
        add_pull(votes[number], mean[number], factor[0, number], factor[1, number], grad_share)


@_compile
@no_type_check
def _through_votes(sample, layer, means, walked, grad_poses, grad_matrices):
    """Gradients of poses and matrices, by way of that of the votes."""
    poses, _, first = sample
    matrices, offsets, _ = layer
    weights, grad_scores, factors = walked
    rounds, windows, types, children = weights.shape
    votes = np.empty((means.shape[3], children), np.float32)
    grad_votes, of_window = np.empty_like(votes), np.empty_like(poses[0])
    for window in range(windows):
        of_window[:] = 0
        for kind in range(types):
            cast(poses[window], matrices[kind], offsets, votes)
            grad_votes[:] = 0
            for step in range(rounds):
                rows = weights[step, window, kind], grad_scores[step, window, kind]
                mean = means[step, first + window, kind]
                ask_of_votes(votes, mean, factors[step, window, kind], rows, grad_votes)
            through_matrices(grad_votes, poses[window], matrices[kind], of_window, grad_matrices[kind])
        turn_back(of_window.reshape(-1, children), grad_poses[first + window])
