"""Operations on a block of neighbouring spots, compiled for the processor: spots are the last axis.

The innermost loop runs over the first `count` spots, which no sum connects, so that it becomes vector
instructions. Arrays come without their batch: `[type, pose, spot]`, `[type, spot]` or `[spot]`.
"""

from math import sqrt
from typing import no_type_check  # numba compiles no function that run-time shape checks have wrapped

import numpy as np

from ..compiled_exponential import exponentiate
from ..compiling import compiled, compiled_sums

_BYTES_OF_HALF = 2
_SIXTEEN, _LOWEST_BIT, _JUST_BELOW_HALF = np.uint32(16), np.uint32(1), np.uint32(0x7FFF)
_EPS = 1e-8  # as in `core.squash`


@compiled
@no_type_check
def widen(source, count, target, target_bits):
    """Copies a row of float32 numbers, or of the bits of bfloat16 ones: the upper half of a float32."""
    if source.itemsize == _BYTES_OF_HALF:
        for spot in range(count):
            target_bits[spot] = np.uint32(source[spot]) << _SIXTEEN
    else:
        for spot in range(count):
            target[spot] = source[spot]


@compiled
@no_type_check
def narrow(source, source_bits, count, target):
    """The way back from `widen`, rounded to the nearest, ties to even."""
    if target.itemsize == _BYTES_OF_HALF:
        for spot in range(count):
            bits = source_bits[spot]
            target[spot] = (bits + _JUST_BELOW_HALF + ((bits >> _SIXTEEN) & _LOWEST_BIT)) >> _SIXTEEN
    else:
        for spot in range(count):
            target[spot] = source[spot]


@compiled
@no_type_check
def agree(votes, targets, count, agreement):
    """`vote . target` of every type."""
    for kind in range(votes.shape[0]):
        total = agreement[kind]
        total[:count] = 0
        for number in range(votes.shape[1]):
            vote, target = votes[kind, number], targets[kind, number]
            for spot in range(count):
                total[spot] += vote[spot] * target[spot]


@compiled
@no_type_check
def pool(votes, split, count, pooled):
    """Adds the weighed votes of a child."""
    for kind in range(votes.shape[0]):
        weight = split[kind]
        for number in range(votes.shape[1]):
            vote, total = votes[kind, number], pooled[kind, number]
            for spot in range(count):
                total[spot] += weight[spot] * vote[spot]


@compiled
@no_type_check
def add_vote_grads(grad_pooled, split, directions, grad_logits, count, grad_votes):
    """Adds the gradients of a child's votes, by way of pooling and of agreement."""
    for kind in range(grad_votes.shape[0]):
        share, towards = split[kind], grad_logits[kind]
        for number in range(grad_votes.shape[1]):
            pooled = grad_pooled[kind, number]
            direction = directions[kind, number]
            total = grad_votes[kind, number]
            for spot in range(count):
                total[spot] += share[spot] * pooled[spot] + towards[spot] * direction[spot]


@compiled
@no_type_check
def add(more, count, target):
    """Adds numbers of a block."""
    for kind in range(more.shape[0]):
        for number in range(more.shape[1]):
            source, total = more[kind, number], target[kind, number]
            for spot in range(count):
                total[spot] += source[spot]


@compiled
@no_type_check
def fill(bias, count, pooled):
    """Begins a sum with the bias."""
    for kind in range(bias.shape[0]):
        for number in range(bias.shape[1]):
            pooled[kind, number, :count] = bias[kind, number]


@compiled
@no_type_check
def scale(count, share, numbers):
    """Multiplies numbers of a block."""
    for kind in range(numbers.shape[0]):
        for number in range(numbers.shape[1]):
            row = numbers[kind, number]
            for spot in range(count):
                row[spot] *= share


@compiled
@no_type_check
def softmax(logits, leaky, count, total):
    """Couplings over the types in the place of logits; `leaky` adds one logit of 0 and drops its share."""
    _subtract_largest(logits, leaky, count, total)
    if leaky:  # where the largest was subtracted from 0 too
        exponentiate(total, count)
    else:
        total[:count] = 0
    for kind in range(logits.shape[0]):
        row = logits[kind]
        exponentiate(row, count)
        for spot in range(count):
            total[spot] += row[spot]
    for kind in range(logits.shape[0]):
        row = logits[kind]
        for spot in range(count):
            row[spot] /= total[spot]


@compiled
@no_type_check
def _subtract_largest(logits, leaky, count, largest):
    """Makes the largest logit 0, and `largest` the logit that would have been 0."""
    for spot in range(count):
        largest[spot] = 0 if leaky else logits[0, spot]
    for kind in range(logits.shape[0]):
        row = logits[kind]
        for spot in range(count):
            largest[spot] = row[spot] if row[spot] > largest[spot] else largest[spot]
    for kind in range(logits.shape[0]):
        row = logits[kind]
        for spot in range(count):
            row[spot] -= largest[spot]
    for spot in range(count):
        largest[spot] = -largest[spot]


@compiled
@no_type_check
def softmax_backward(split, count, grad, total):
    """The gradient of logits in the place of that of the splits."""
    types = split.shape[0]
    total[:count] = 0
    for kind in range(types):
        share, towards = split[kind], grad[kind]
        for spot in range(count):
            total[spot] += share[spot] * towards[spot]
    for kind in range(types):
        share, towards = split[kind], grad[kind]
        for spot in range(count):
            towards[spot] = share[spot] * (towards[spot] - total[spot])


@compiled
@no_type_check
def square(poses, count, squared):
    """Squared lengths, in which no float32 number overflows."""
    squared[:count] = 0
    for number in range(poses.shape[0]):
        source = poses[number]
        for spot in range(count):
            value = np.float64(source[spot])
            squared[spot] += value * value


@compiled
@no_type_check
def squash(pooled, count, poses):
    """As `core.squash`."""
    types, pose, _ = pooled.shape
    squared, factor = np.empty(count, np.float64), np.empty(count, np.float32)
    for kind in range(types):
        square(pooled[kind], count, squared)
        for spot in range(count):
            length = squared[spot]
            factor[spot] = np.float32(length / (1 + length) / sqrt(length + _EPS))
        for number in range(pose):
            source, target = pooled[kind, number], poses[kind, number]
            for spot in range(count):
                target[spot] = source[spot] * factor[spot]


@compiled_sums
@no_type_check
def squash_backward(pooled, grad, count, grad_pooled, grad_bias):
    """As `kernels.squash.squash_backward`."""
    types, pose, _ = pooled.shape
    squared, along = np.empty(count, np.float64), np.empty(count, np.float64)
    factor, turn = np.empty(count, np.float32), np.empty(count, np.float32)
    for kind in range(types):
        square(pooled[kind], count, squared)
        along[:] = 0
        for number in range(pose):
            source, towards = pooled[kind, number], grad[kind, number]
            for spot in range(count):
                along[spot] += np.float64(source[spot]) * np.float64(towards[spot])
        for spot in range(count):
            length = squared[spot]
            inverse = 1 / sqrt(length + _EPS)
            shrink = length / (1 + length)
            slope = inverse * (2 / ((1 + length) * (1 + length)) - shrink * inverse * inverse)
            factor[spot], turn[spot] = np.float32(shrink * inverse), np.float32(slope * along[spot])
        for number in range(pose):
            source, towards, target = pooled[kind, number], grad[kind, number], grad_pooled[kind, number]
            for spot in range(count):
                target[spot] = towards[spot] * factor[spot] + source[spot] * turn[spot]
            total = 0.0
            for spot in range(count):
                total += np.float64(target[spot])
            grad_bias[kind, number] += total
