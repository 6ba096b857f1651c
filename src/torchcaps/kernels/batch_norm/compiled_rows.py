"""Passes of batch normalisation over rows of channels, compiled for the processor.

Each number is read once a pass. What a channel has in `added` is added to its numbers; a sum below `floor`
counts as `floor`: 0 rectifies, minus infinity does nothing. Sums of a few rows are float32, several rows at a
time; the sums of these are float64.
"""

from typing import no_type_check  # numba compiles no function that run-time shape checks have wrapped

import numpy as np

from ..compiling import compiled

_ROWS = 64  # that are added in float32
_ZERO = np.float32(0)


@compiled
@no_type_check
def _raised(value, floor):
    return floor if value < floor else value


@compiled
@no_type_check
def add_moments(rows, added, floor, near, totals):
    """Adds the sums of all numbers' distances from `near`, a number of each channel, and of their squares."""
    count, channels = rows.shape
    sums, squares = np.empty(channels, np.float32), np.empty(channels, np.float32)
    for start in range(0, count, _ROWS):
        stop = min(start + _ROWS, count)
        sums[:] = _ZERO
        squares[:] = _ZERO
        whole = start + (stop - start) // 4 * 4
        for row in range(start, whole, 4):
            r0, r1, r2, r3 = rows[row], rows[row + 1], rows[row + 2], rows[row + 3]
            for channel in range(channels):
                origin, more = near[channel], added[channel]
                a = _raised(r0[channel] + more, floor) - origin
                b = _raised(r1[channel] + more, floor) - origin
                c = _raised(r2[channel] + more, floor) - origin
                d = _raised(r3[channel] + more, floor) - origin
                sums[channel] += (a + b) + (c + d)
                squares[channel] += (a * a + b * b) + (c * c + d * d)
        for row in range(whole, stop):
            for channel in range(channels):
                away = _raised(rows[row, channel] + added[channel], floor) - near[channel]
                sums[channel] += away
                squares[channel] += away * away
        for channel in range(channels):
            totals[0, channel] += sums[channel]
            totals[1, channel] += squares[channel]


@compiled
@no_type_check
def normalise(rows, added, floor, scale, shift, out):
    """Fills `out` with every number times `scale` plus `shift` of its channel."""
    count, channels = rows.shape
    for row in range(count):
        source, target = rows[row], out[row]
        for channel in range(channels):
            value = _raised(source[channel] + added[channel], floor)
            target[channel] = value * scale[channel] + shift[channel]


@compiled
@no_type_check
def add_grad_sums(rows, added, grads, floor, near, totals):
    """Adds the sums of gradients, and of gradients times the distance from `near`."""
    count, channels = rows.shape
    sums, products = np.empty(channels, np.float32), np.empty(channels, np.float32)
    for start in range(0, count, _ROWS):
        stop = min(start + _ROWS, count)
        sums[:] = _ZERO
        products[:] = _ZERO
        whole = start + (stop - start) // 2 * 2
        for row in range(start, whole, 2):
            r0, r1, g0, g1 = rows[row], rows[row + 1], grads[row], grads[row + 1]
            for channel in range(channels):
                a = _raised(r0[channel] + added[channel], floor) - near[channel]
                b = _raised(r1[channel] + added[channel], floor) - near[channel]
                sums[channel] += g0[channel] + g1[channel]
                products[channel] += g0[channel] * a + g1[channel] * b
        for row in range(whole, stop):
            for channel in range(channels):
                grad = grads[row, channel]
                sums[channel] += grad
                products[channel] += grad * (
                    _raised(rows[row, channel] + added[channel], floor) - near[channel]
                )
        for channel in range(channels):
            totals[0, channel] += sums[channel]
            totals[1, channel] += products[channel]


@compiled
@no_type_check
def differentiate(rows, added, grads, floor, factors, out, totals):
    """Fills `out` with `shift + slope * number + scale * gradient` above `floor`, 0 elsewhere; adds its sums.

    `factors` are shift, slope and scale of each channel.
    """
    count, channels = rows.shape
    shift, slope, scale = factors[0], factors[1], factors[2]
    sums = np.empty(channels, np.float32)
    for start in range(0, count, _ROWS):
        sums[:] = _ZERO
        for row in range(start, min(start + _ROWS, count)):
            source, grad, target = rows[row], grads[row], out[row]
            for channel in range(channels):
                value = source[channel] + added[channel]
                full = shift[channel] + value * slope[channel] + grad[channel] * scale[channel]
                kept = _ZERO if value <= floor else full
                target[channel] = kept
                sums[channel] += kept
        for channel in range(channels):
            totals[0, channel] += sums[channel]
