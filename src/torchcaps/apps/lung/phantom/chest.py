"""The body around the nodules: skin, fat, ribs, spine, heart and two lungs, each a smooth shape."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from numpy.typing import NDArray

Numbers = NDArray[np.float64]
_WAVES = 6  # of the lung tissue
_TRIES = 4000  # points looked at for one of a given depth


@dataclass(frozen=True, kw_only=True, eq=False)
class Chest:
    """Sizes of a chest in millimetres; its middle is the origin, and axes are left, posterior, superior.

    Attributes:
        body: Half axes across and from front to back.
        fat: Thickness under the skin.
        lungs: Two rows (right, left) of centre and half axes.
        heart: Centre and half axes.
        ribs: Height at which a rib crosses the middle, and from there to the next.
        parenchyma: Hounsfield units of the lung.
        texture: Waves of the lung tissue: rows of (frequency per mm in three axes, phase, height).
    """

    body: Numbers
    fat: float
    lungs: Numbers
    heart: Numbers
    ribs: Numbers
    parenchyma: float
    texture: Numbers

    def lung_depth(self, points: Float[np.ndarray, "*shape 3"]) -> Float[np.ndarray, "*shape"]:
        """Millimetres to the surface of the lungs, about; negative inside."""
        inside = np.minimum(*(_ellipsoid(points, lung) for lung in self.lungs))
        return np.maximum(inside, -_ellipsoid(points, self.heart))

    def point_at_depth(
        self, random: np.random.Generator, depths: tuple[float, float], reach: float
    ) -> Float[np.ndarray, " 3"]:
        """A point whose distance to the surface of the lungs lies between two depths, or nearly."""
        points = random.uniform(-1, 1, (_TRIES, 3)) * np.array([*self.body, reach])
        found = self.lung_depth(points)
        beside = np.maximum(depths[0] - found, found - depths[1])
        return points[int(np.argmax(beside < 0)) if (beside < 0).any() else int(beside.argmin())]

    def layers(
        self, points: Float[np.ndarray, "*shape 3"]
    ) -> list[tuple[Float[np.ndarray, "*shape"], float | Float[np.ndarray, "*shape"]]]:
        """What is drawn over what: depths with the Hounsfield units inside, without vessels and nodules."""
        x, y, z = np.moveaxis(points, -1, 0)
        size = float(self.body.min())
        wall = (np.hypot(x / self.body[0], y / self.body[1]) - 1) * size
        spine = np.hypot(x / 18, (y - 0.62 * self.body[1]) / 16) * 16 - 16
        first, period = self.ribs
        rib_height = np.abs((z + 0.35 * y - first + period / 2) % period - period / 2)
        ribs = np.maximum(np.abs(wall + self.fat + 9) - 4, rib_height - 4.5)
        return [
            (wall, -95.0),
            (wall + self.fat, 45.0),
            (ribs, 420.0),
            (spine, 330.0),
            (self.lung_depth(points), self._lung(points)),
        ]

    def _lung(self, points: Numbers) -> Numbers:
        total = np.full(points.shape[:-1], self.parenchyma)
        for *frequency, phase, height in self.texture:
            total += height * np.cos(points @ np.array(frequency) + phase)
        return total + 0.25 * points[..., 1]  # blood sinks to the back of a person who lies


def _ellipsoid(points: Numbers, shape: Numbers) -> Numbers:
    """About the distance to the surface, for half axes that do not differ much."""
    axes = shape[3:]
    return (np.linalg.norm((points - shape[:3]) / axes, axis=-1) - 1) * float(axes.min())


def draw_chest(random: np.random.Generator) -> Chest:
    """A chest of random size."""
    body = np.array([random.uniform(155, 185), random.uniform(105, 125)])
    across, deep, tall = 0.36 * body[0], 0.68 * body[1], random.uniform(100, 130)
    lungs = [[side * 0.44 * body[0], -4, 0, across, deep, tall] for side in (-1, 1)]
    heart = [random.uniform(10, 22), random.uniform(-40, -28), -35, 48, 42, 65]
    frequencies = random.normal(0, 0.35, (_WAVES, 3))
    heights = random.normal(0, 16, (_WAVES, 1))
    return Chest(
        body=body,
        fat=random.uniform(8, 20),
        lungs=np.array(lungs),
        heart=np.array(heart),
        ribs=np.array([random.uniform(0, 24), random.uniform(24, 30)]),
        parenchyma=random.uniform(-890, -810),
        texture=np.hstack([frequencies, random.uniform(0, 2 * np.pi, (_WAVES, 1)), heights]),
    )
