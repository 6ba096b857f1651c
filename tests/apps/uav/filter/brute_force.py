"""The filter by the book, in float64: every voxel sends its mass to every other voxel, one at a time."""

import math
from functools import cache

import numpy as np


def share(cells, mean, sigma):
    """Probability that a motion ends so many whole cells away: a split between two cells, and the difference
    of two Poisson counts for the variance that is left.
    """
    low = math.floor(mean)
    part = mean - low
    rate = max(sigma**2 - part * (1 - part), 0.0) / 2
    return (1 - part) * skellam_share(cells - low, rate) + part * skellam_share(cells - low - 1, rate)


@cache
def skellam_share(difference, rate):
    counts = range(40)
    poisson = [math.exp(-rate) * rate**count / math.factorial(count) for count in counts]
    return sum(poisson[n] * poisson[n - difference] for n in counts if 0 <= n - difference < len(poisson))


def brute_force_predict(grid, belief, odometry, noise):
    """Mass of a voxel times the probability that the motion ends in each other voxel."""
    sigma = noise.place * odometry.travelled / grid.cell
    turn_sigma = noise.heading * odometry.travelled / grid.heading_step
    result = np.zeros(grid.shape)
    for (heading, row, column), mass in np.ndenumerate(belief):
        angle = grid.heading_centres[heading]
        east = odometry.forward * math.cos(angle) - odometry.left * math.sin(angle)
        north = odometry.forward * math.sin(angle) + odometry.left * math.cos(angle)
        x = [share(k - column, east / grid.cell, sigma) for k in range(grid.columns)]
        y = [share(k - row, north / grid.cell, sigma) for k in range(grid.rows)]
        turns = np.zeros(grid.headings)
        for winding in (-2, -1, 0, 1, 2):
            for other in range(grid.headings):
                turned = other - heading + winding * grid.headings
                turns[other] += share(turned, odometry.turn / grid.heading_step, turn_sigma)
        result += mass * np.einsum("l,j,i->lji", turns, y, x)
    return result


def brute_force_weights(vectors, query, weigh):
    """The weight of every voxel's descriptor, one at a time."""
    unit = query / np.linalg.norm(query)
    return np.array(
        [weigh(np.linalg.norm(unit - vector)) for vector in vectors.reshape(-1, len(unit))]
    ).reshape(vectors.shape[:3])
