"""Drawn nodules: a bumpy ball, perhaps with spicules, solid, part-solid or of ground glass."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Float
from numpy.typing import NDArray

Numbers = NDArray[np.float64]
Texture = Literal["solid", "part-solid", "ground-glass"]
TEXTURES: tuple[Texture, ...] = ("solid", "part-solid", "ground-glass")
_SHARPNESS = 14.0  # of a spicule, in units of the cosine to its axis


@dataclass(frozen=True, kw_only=True, eq=False)
class Nodule:
    """A nodule, in millimetres and Hounsfield units.

    Attributes:
        centre: (left, posterior, superior).
        radius: Of the ball before it is made uneven.
        axes: Factors along the three axes.
        waves: Bumps: rows of (direction times frequency, phase, height as a share of the radius).
        spicules: Rows of (direction, height as a share of the radius).
        hounsfield: Inside.
        edge: Width over which it fades into the lung.
    """

    centre: Numbers
    radius: float
    axes: Numbers
    waves: Numbers
    spicules: Numbers
    texture: Texture
    hounsfield: float
    edge: float

    @property
    def reach(self) -> float:
        """Farther from the centre than this there is nothing of the nodule or its outlines."""
        bumps = np.abs(self.waves[:, 4]).sum() + (self.spicules[:, 3].max() if len(self.spicules) else 0)
        return float(self.radius * self.axes.max() * (1.3 + 1.2 * bumps) + self.edge + 2)

    def depth(
        self, points: Float[np.ndarray, "*shape 3"], *, spiculation: float = 1.0
    ) -> Float[np.ndarray, "*shape"]:
        """Millimetres to the surface, about; negative inside. `spiculation` scales the spicules."""
        offset = (points - self.centre) / self.axes
        distance = np.linalg.norm(offset, axis=-1)
        direction = offset / np.maximum(distance, 1e-6)[..., None]
        uneven = 1 + wave_heights(direction, self.waves)
        for *axis, height in self.spicules:
            uneven = uneven + spiculation * height * np.exp(_SHARPNESS * (direction @ np.array(axis) - 1))
        return distance - self.radius * uneven


def wave_heights(
    direction: Float[np.ndarray, "*shape 3"], waves: Float[np.ndarray, "count 5"]
) -> Float[np.ndarray, "*shape"]:
    """The sum of waves over the unit sphere."""
    total = np.zeros(direction.shape[:-1])
    for *frequency, phase, height in waves:
        total += height * np.cos(direction @ np.array(frequency) + phase)
    return total


def draw_waves(random: np.random.Generator, count: int, height: float) -> Float[np.ndarray, "count 5"]:
    """Random bumps of a height that is typical of all of them together."""
    frequencies = random.normal(size=(count, 3)) * random.uniform(1.0, 2.5, (count, 1))
    phases = random.uniform(0, 2 * np.pi, (count, 1))
    heights = random.normal(0, height / np.sqrt(count), (count, 1))
    return np.hstack([frequencies, phases, heights])


def draw_nodule(random: np.random.Generator, centre: Float[np.ndarray, " 3"], radius: float) -> Nodule:
    """A nodule of random shape and texture."""
    texture: Texture = TEXTURES[random.choice(3, p=[0.6, 0.15, 0.25])]
    is_spiculated = texture != "ground-glass" and random.random() < 0.35
    directions = random.normal(size=(random.integers(4, 10) if is_spiculated else 0, 3))
    heights = random.uniform(0.3, 0.9, (len(directions), 1))
    axes = directions / np.maximum(np.linalg.norm(directions, axis=1, keepdims=True), 1e-9)
    is_glass = texture == "ground-glass"
    return Nodule(
        centre=centre,
        radius=radius,
        axes=random.uniform(0.75, 1.25, 3),
        waves=draw_waves(random, 6, 0.18),
        spicules=np.hstack([axes, heights]),
        texture=texture,
        hounsfield=random.uniform(-740, -520) if is_glass else random.uniform(-300, 60),
        edge=random.uniform(1.5, 3.5) if is_glass else random.uniform(0.8, 1.8),
    )
