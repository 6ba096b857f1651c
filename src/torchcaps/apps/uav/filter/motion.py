"""How odometry moves and spreads a belief: short kernels along x, y and heading."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from torchcaps.core import UserError

from .grid import Grid

_SIGMAS = 4.0  # a kernel covers at least so many standard deviations on both sides


@dataclass(frozen=True)
class Odometry:
    """A motion since the last update, in the frame of the vehicle at that update.

    Attributes:
        forward: Metres along the old heading.
        left: Metres to the left of it.
        turn: Change of the heading in radians, counter-clockwise.
        distance: Metres travelled, which scale the noise; the straight distance where it is not given.
    """

    forward: float
    left: float
    turn: float
    distance: float | None = None

    def __post_init__(self) -> None:
        values = (self.forward, self.left, self.turn, self.travelled)
        if not all(math.isfinite(value) for value in values):
            raise UserError(f"odometry must be finite, not {values}")
        if self.travelled < 0:
            raise UserError(f"a travelled distance cannot be negative: {self.travelled} m")

    @property
    def travelled(self) -> float:
        """The distance that scales the noise."""
        return math.hypot(self.forward, self.left) if self.distance is None else self.distance


@dataclass(frozen=True)
class MotionNoise:
    """Standard deviations for each metre travelled, those of the thesis by default."""

    place: float = 0.05
    heading: float = math.radians(0.15)


@dataclass(frozen=True)
class Taps:
    """A short kernel: `weights[k]` of a cell's mass moves by `first + k` cells."""

    first: int
    weights: NDArray[np.float64]


@dataclass(frozen=True)
class Prediction:
    """The kernels of one motion: along x and y for each heading before the motion, and along the heading."""

    x: tuple[Taps, ...]
    y: tuple[Taps, ...]
    heading: Taps


def spread(shift: float, sigma: float) -> Taps:
    """The share of a cell's mass that a normal motion takes to each cell; shift and sigma are in cells."""
    reach = math.ceil(_SIGMAS * sigma + 0.5)
    first = round(shift) - reach
    edges = first - 0.5 + np.arange(2 * reach + 2)
    if sigma == 0:
        below = (edges > shift).astype(np.float64)
    else:
        below = np.array([0.5 * (1 + math.erf((edge - shift) / (sigma * math.sqrt(2)))) for edge in edges])
    weights = np.diff(below)
    return Taps(first, weights / weights.sum())


def predict_motion(grid: Grid, odometry: Odometry, noise: MotionNoise) -> Prediction:
    """The kernels for a grid: each heading moves along its own direction before the turn."""
    sigma = noise.place * odometry.travelled / grid.cell
    angles = grid.heading_centres
    east = (odometry.forward * np.cos(angles) - odometry.left * np.sin(angles)) / grid.cell
    north = (odometry.forward * np.sin(angles) + odometry.left * np.cos(angles)) / grid.cell
    turned = spread(odometry.turn / grid.heading_step, noise.heading * odometry.travelled / grid.heading_step)
    return Prediction(
        tuple(spread(float(shift), sigma) for shift in east),
        tuple(spread(float(shift), sigma) for shift in north),
        turned,
    )
