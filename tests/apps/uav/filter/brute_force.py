"""The filter by the book, in float64: every voxel sends its mass to every other voxel, one at a time."""

import math

import numpy as np


def normal_share(low, high, mean, sigma):
    return 0.5 * (
        math.erf((high - mean) / (sigma * math.sqrt(2))) - math.erf((low - mean) / (sigma * math.sqrt(2)))
    )


def brute_force_predict(grid, belief, odometry, noise):
    """Mass of a voxel times the probability that the motion ends in each other voxel."""
    sigma, turn_sigma = noise.place * odometry.travelled, noise.heading * odometry.travelled
    half, turn_half, result = grid.cell / 2, grid.heading_step / 2, np.zeros(grid.shape)
    for (heading, row, column), mass in np.ndenumerate(belief):
        angle = grid.heading_centres[heading]
        east = odometry.forward * math.cos(angle) - odometry.left * math.sin(angle)
        north = odometry.forward * math.sin(angle) + odometry.left * math.cos(angle)
        x = [
            normal_share(dx - half, dx + half, east, sigma)
            for dx in (np.arange(grid.columns) - column) * grid.cell
        ]
        y = [
            normal_share(dy - half, dy + half, north, sigma)
            for dy in (np.arange(grid.rows) - row) * grid.cell
        ]
        turns = np.zeros(grid.headings)
        for winding in (-2, -1, 0, 1, 2):
            for other in range(grid.headings):
                angle = (other - heading + winding * grid.headings) * grid.heading_step
                turns[other] += normal_share(angle - turn_half, angle + turn_half, odometry.turn, turn_sigma)
        result += mass * np.einsum("l,j,i->lji", turns, y, x)
    return result


def brute_force_weights(vectors, query, weigh):
    """The weight of every voxel's descriptor, one at a time."""
    unit = query / np.linalg.norm(query)
    return np.array(
        [weigh(np.linalg.norm(unit - vector)) for vector in vectors.reshape(-1, len(unit))]
    ).reshape(vectors.shape[:3])
