"""What a filter asks of the code that moves and weighs its belief."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from .descriptors import Descriptors
from .motion import Prediction


@dataclass(frozen=True)
class Match:
    """An image compared with the map: the map, the factors of its stored values, the weights of distances."""

    descriptors: Descriptors
    tables: NDArray[np.float32]
    weights: NDArray[np.float32]


@dataclass(frozen=True)
class Evidence:
    """What is measured at an update: a weight for each heading (zero skips it), and an image or none."""

    headings: NDArray[np.float64]
    match: Match | None = None


@dataclass(frozen=True)
class Moments:
    """Sums over the belief in cells: for each heading its mass, and over all headings those of the places.

    Attributes:
        mass: (headings,).
        x: Sum of mass times column, (headings,).
        y: Sum of mass times row, (headings,).
        square: Sum of mass times (column squared + row squared), (headings,).
        peak: The largest belief of a voxel.
    """

    mass: NDArray[np.float64]
    x: NDArray[np.float64]
    y: NDArray[np.float64]
    square: NDArray[np.float64]
    peak: float


@runtime_checkable
class Backend(Protocol):
    """Holds a belief that need not sum to one, and updates it in place."""

    def fill(self, belief: NDArray[np.floating]) -> None:
        """Take over a belief of (heading, row, column)."""

    def read(self) -> NDArray[np.floating]:
        """A copy of the belief."""

    def update(self, prediction: Prediction, evidence: Evidence, scale: float) -> Moments:
        """Move the belief times `scale` along a prediction, weigh it by the evidence, sum it up."""
