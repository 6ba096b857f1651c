"""Four readers who outline the same nodules and disagree on their size, their rim, and what is one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float
from numpy.typing import NDArray

from .nodule import Nodule, draw_waves, wave_heights
from .patient import Patient
from .scanner import Grid, pixels_near

NUM_READERS = 4
_SEEN = {"solid": 0.95, "part-solid": 0.9, "ground-glass": 0.75}


@dataclass(frozen=True, kw_only=True, eq=False)
class Reading:
    """How one reader sees one nodule.

    Attributes:
        growth: Millimetres by which the outline lies outside of the surface.
        waves: Bumps of the outline, as shares of the radius.
        spiculation: How much of the spicules is included.
        wall: Millimetres that the outline may leave the lung.
    """

    nodule: Nodule
    growth: float
    waves: NDArray[np.float64]
    spiculation: float
    wall: float

    def mask(self, patient: Patient, grid: Grid) -> Bool[np.ndarray, "rows columns"]:
        """The pixels that the reader's outline encloses."""
        found = np.zeros(grid.shape, dtype=bool)
        block = pixels_near(self.nodule, grid, grid.height)
        if block is None:
            return found
        points = grid.points(*block, grid.height)
        found[block] = (self._depth(points) < 0) & (patient.chest.lung_depth(points) < self.wall)
        return found

    def _depth(self, points: Float[np.ndarray, "*shape 3"]) -> Float[np.ndarray, "*shape"]:
        offset = points - self.nodule.centre
        direction = offset / np.maximum(np.linalg.norm(offset, axis=-1, keepdims=True), 1e-6)
        own = self.nodule.radius * wave_heights(direction, self.waves)
        return self.nodule.depth(points, spiculation=self.spiculation) - self.growth - own


def draw_readings(patient: Patient) -> list[list[Reading]]:
    """For each of the four readers, the nodules that this reader marks; each nodule has one at least."""
    random = np.random.default_rng([patient.seed, 4])
    habits = random.normal(0, 0.35, NUM_READERS)  # mm by which a reader draws larger than others
    found: list[list[Reading]] = [[] for _ in range(NUM_READERS)]
    for nodule in patient.nodules:
        is_seen = random.random(NUM_READERS) < _SEEN[nodule.texture]
        is_seen[random.integers(NUM_READERS)] = True
        for reader in np.flatnonzero(is_seen):
            found[reader].append(_draw_reading(random, nodule, habits[reader]))
    return found


def _draw_reading(random: np.random.Generator, nodule: Nodule, habit: float) -> Reading:
    unsure = 1.8 if nodule.texture == "ground-glass" else 1.0
    return Reading(
        nodule=nodule,
        growth=float(habit + random.normal(0.1, 0.35 * unsure)),
        waves=draw_waves(random, 5, 0.12 * unsure),
        spiculation=float(random.uniform(0, 1)),
        wall=float(random.uniform(0, 3)),
    )
