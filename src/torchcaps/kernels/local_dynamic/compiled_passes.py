"""The passes of local dynamic routing, compiled for the processor.

All iterations run over a block of neighbouring spots of one sample: what a child casts there is read from
memory once, agrees with the direction, is split and pooled while it is in the cache, and of a map only the
result is written.
"""

from math import sqrt
from typing import no_type_check  # numba compiles no function that run-time shape checks have wrapped

import numpy as np

from ..compiling import compiled
from .compiled_rows import (
    add,
    add_vote_grads,
    agree,
    fill,
    narrow,
    pool,
    scale,
    softmax,
    softmax_backward,
    square,
    squash,
    squash_backward,
    widen,
)


@compiled
@no_type_check
def route_spots(votes, bias, poses, lengths, iterations, leaky, place, lanes):
    """Fills poses and lengths at `place`: its first and last sample and spot, the last excluded."""
    _, children, types, pose, _ = votes.shape
    block = np.empty((children, types, pose, lanes), np.float32)
    rounds = _new_rounds(iterations, children, types, pose, lanes)
    for sample in range(place[0], place[1]):
        for start in range(place[2], place[3], lanes):
            count = min(lanes, place[3] - start)
            _load(votes[sample], start, count, bias, leaky, block, rounds[0][0])
            _iterate(block, bias, iterations, leaky, count, rounds)
            _finish(rounds[0][iterations - 1], count, poses[sample], lengths[sample], start)


@compiled
@no_type_check
def differentiate_spots(votes, bias, poses, grad_poses, grad_lengths, grad_votes, how, place, lanes):
    """Fills gradients of votes at `place`, and returns their share of the gradient of the bias, in float64.

    `how` holds the number of iterations, whether all of them are differentiated, and whether they are leaky.
    """
    _, children, types, pose, _ = votes.shape
    iterations, _, leaky = how
    block = np.empty((children, types, pose, lanes), np.float32)
    grads = np.empty((children, types, pose, lanes), np.float32), np.empty((types, pose, lanes), np.float32)
    incoming = np.empty((types, pose, lanes), np.float32)
    rounds = _new_rounds(iterations, children, types, pose, lanes)
    grad_bias = np.zeros((types, pose), np.float64)
    for sample in range(place[0], place[1]):
        for start in range(place[2], place[3], lanes):
            count = min(lanes, place[3] - start)
            _load(votes[sample], start, count, bias, leaky, block, rounds[0][0])
            _iterate(block, bias, iterations, leaky, count, rounds)
            _incoming(poses[sample], grad_poses[sample], grad_lengths[sample], start, count, incoming)
            _go_back(block, incoming, how, count, rounds, grads, grad_bias)
            _store(*grads, count, grad_votes[sample], start)
    return grad_bias


@compiled
@no_type_check
def _new_rounds(iterations, children, types, pose, lanes):
    """What the iterations of a block give: pooled votes, directions, splits."""
    return (
        np.empty((iterations, types, pose, lanes), np.float32),
        np.empty((iterations, types, pose, lanes), np.float32),
        np.empty((iterations, children, types, lanes), np.float32),
    )


@compiled
@no_type_check
def _load(votes, start, count, bias, leaky, block, pooled):
    """Copies the votes of a block, and pools them evenly."""
    children, types, pose, _ = block.shape
    bits = block.view(np.uint32)
    share = np.float32(1.0 / (types + leaky))
    for kind in range(types):
        for number in range(pose):
            total = pooled[kind, number]
            total[:count] = 0
            for child in range(children):
                source = votes[child, kind, number, start : start + count]
                widen(source, count, block[child, kind, number], bits[child, kind, number])
                vote = block[child, kind, number]
                for spot in range(count):
                    total[spot] += vote[spot]
            offset = bias[kind, number]
            for spot in range(count):
                total[spot] = total[spot] * share + offset


@compiled
@no_type_check
def _iterate(block, bias, iterations, leaky, count, rounds):
    pooled, directions, splits = rounds
    total = np.empty(count, np.float32)
    for step in range(iterations - 1):
        squash(pooled[step], count, directions[step])
        if step:
            add(directions[step - 1], count, directions[step])
        fill(bias, count, pooled[step + 1])
        for child in range(len(block)):
            split = splits[step, child]
            agree(block[child], directions[step], count, split)
            softmax(split, leaky, count, total)
            pool(block[child], split, count, pooled[step + 1])


@compiled
@no_type_check
def _finish(pooled, count, poses, lengths, start):
    """Writes the squashed result of a block and its lengths."""
    types, pose, _ = pooled.shape
    squash(pooled, count, pooled)
    squared = np.empty(count, np.float64)
    for kind in range(types):
        square(pooled[kind], count, squared)
        long = lengths[kind, start : start + count]
        for spot in range(count):
            long[spot] = np.float32(sqrt(squared[spot]))
        for number in range(pose):
            source, target = pooled[kind, number], poses[kind, number, start : start + count]
            for spot in range(count):
                target[spot] = source[spot]


@compiled
@no_type_check
def _incoming(poses, grad_poses, grad_lengths, start, count, incoming):
    """Fills the gradient of the poses, also by way of their lengths; zero by way of a length of zero."""
    types, pose, _ = incoming.shape
    spots = slice(start, start + count)
    squared, along = np.empty(count, np.float64), np.empty(count, np.float32)
    for kind in range(types):
        square(poses[kind, :, spots], count, squared)
        towards = grad_lengths[kind, spots]
        for spot in range(count):
            along[spot] = np.float32(towards[spot] / sqrt(squared[spot])) if squared[spot] > 0 else 0
        for number in range(pose):
            source, grad = poses[kind, number, spots], grad_poses[kind, number, spots]
            target = incoming[kind, number]
            for spot in range(count):
                target[spot] = grad[spot] + source[spot] * along[spot]


@compiled
@no_type_check
def _go_back(block, incoming, how, count, rounds, grads, grad_bias):
    """Fills the gradients of a block's votes, adds to that of the bias; overwrites `incoming`.

    `grads` are what single children get and what all of them get alike.
    """
    iterations, full, leaky = how
    pooled, directions, splits = rounds
    grad_block, evenly = grads
    children, types, _, lanes = block.shape
    grad_logits, total = np.zeros((types, lanes), np.float32), np.empty(lanes, np.float32)
    squash_backward(pooled[iterations - 1], incoming, count, evenly, grad_bias)
    grad_block[:] = 0
    incoming[:] = 0  # from here on the gradient of the direction
    for step in range(iterations - 2, -1, -1):
        for child in range(children):
            split = splits[step, child]
            if full:
                agree(block[child], evenly, count, grad_logits)
                softmax_backward(split, count, grad_logits, total)
                pool(block[child], grad_logits, count, incoming)
            add_vote_grads(evenly, split, directions[step], grad_logits, count, grad_block[child])
        if not full:
            evenly[:] = 0
            return
        squash_backward(pooled[step], incoming, count, evenly, grad_bias)
    scale(count, np.float32(1.0 / (types + leaky)), evenly)


@compiled
@no_type_check
def _store(block, evenly, count, votes, start):
    """Writes the gradient of the votes; `evenly` is that by way of the first, even split, alike for all."""
    children, types, pose, lanes = block.shape
    row = np.empty(lanes, np.float32)
    bits = row.view(np.uint32)
    for child in range(children):
        for kind in range(types):
            for number in range(pose):
                source, more = block[child, kind, number], evenly[kind, number]
                for spot in range(count):
                    row[spot] = source[spot] + more[spot]
                narrow(row, bits, count, votes[child, kind, number, start : start + count])
