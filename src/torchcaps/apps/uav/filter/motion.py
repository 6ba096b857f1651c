"""How odometry moves and spreads a belief: short kernels along x, y and heading."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from torchcaps.core import Number, UserError

from .grid import Grid

_SIGMAS = 4.0  # a kernel covers at least so many standard deviations on both sides
_FARTHEST = 2.0**30  # cells; whatever moves so far has left the map, and its place is still a whole number


@dataclass(frozen=True)
class Odometry:
    """A motion since the last update, in the frame of the vehicle at that update.

    Attributes:
        forward: Metres along the old heading.
        left: Metres to the left of it.
        turn: Change of the heading in radians, counter-clockwise.
        distance: Metres travelled, which scale the noise; the straight distance where it is not given.
    """

    forward: Number
    left: Number
    turn: Number
    distance: Number | None = None

    def __post_init__(self) -> None:
        values = (self.forward, self.left, self.turn, self.travelled)
        if not all(math.isfinite(value) for value in values):
            raise UserError(f"odometry must be finite, not {values}")
        if self.travelled < 0:
            raise UserError(f"a travelled distance cannot be negative: {self.travelled} m")

    @property
    def travelled(self) -> Number:
        """The distance that scales the noise."""
        return math.hypot(self.forward, self.left) if self.distance is None else self.distance


@dataclass(frozen=True)
class MotionNoise:
    """Standard deviations for each metre travelled, those of the thesis by default."""

    place: float = 0.05
    heading: float = math.radians(0.15)


@dataclass(frozen=True)
class Taps:
    """Short kernels: `weights[n, k]` of the mass of a cell of slice n moves by `first[n] + k` cells."""

    first: NDArray[np.int64]
    weights: NDArray[np.float64]


@dataclass(frozen=True)
class Prediction:
    """The kernels of one motion: along x and y for each heading before it, and one along the heading."""

    x: Taps
    y: Taps
    heading: Taps


def spread(shifts: NDArray[np.float64], sigma: float) -> Taps:
    """The share of a cell's mass that a motion takes to each cell; shifts and sigma are in cells.

    A shift by part of a cell splits the mass between two, so that its mean moves exactly as far: a mean that
    went to the nearest cell would lose up to half a cell at every update, and always the same way along a
    straight course. The split alone spreads the mass by part * (1 - part); the discrete normal law, whose
    variance is exact on whole cells, adds what the noise has beyond that.
    """
    from scipy.special import ive

    shifts = shifts.clip(-_FARTHEST, _FARTHEST)
    low = np.floor(shifts)
    part = (shifts - low)[:, None]
    reach = math.ceil(_SIGMAS * sigma)
    beyond = np.maximum(sigma**2 - part * (1 - part), 0.0)
    kernel = ive(np.abs(np.arange(-reach, reach + 1)), beyond)
    kernel /= kernel.sum(1, keepdims=True)
    nothing = np.zeros_like(part)
    weights = (1 - part) * np.hstack([kernel, nothing]) + part * np.hstack([nothing, kernel])
    return Taps(low.astype(np.int64) - reach, weights)


def predict_motion(grid: Grid, odometry: Odometry, noise: MotionNoise) -> Prediction:
    """The kernels for a grid: each heading moves along its own direction before the turn."""
    sigma = noise.place * odometry.travelled / grid.cell
    angles = grid.heading_centres
    east = (odometry.forward * np.cos(angles) - odometry.left * np.sin(angles)) / grid.cell
    north = (odometry.forward * np.sin(angles) + odometry.left * np.cos(angles)) / grid.cell
    turn = np.array([math.remainder(odometry.turn, 2 * math.pi) / grid.heading_step])
    return Prediction(
        spread(east, sigma),
        spread(north, sigma),
        spread(turn, noise.heading * odometry.travelled / grid.heading_step),
    )


def sources_of(wanted: NDArray[np.bool_], turn: Taps) -> NDArray[np.bool_]:
    """The headings before a turn that feed wanted headings after it."""
    ahead = np.arange(len(wanted))[:, None] + turn.first[0] + np.arange(turn.weights.shape[1])
    return np.asarray(wanted[ahead % len(wanted)].any(1))


def turn_masses(mass: NDArray[np.float64], turn: Taps) -> NDArray[np.float64]:
    """The masses of the headings after a turn."""
    before = np.arange(len(mass))[:, None] - turn.first[0] - np.arange(turn.weights.shape[1])
    return np.asarray(mass[before % len(mass)] @ turn.weights[0])
