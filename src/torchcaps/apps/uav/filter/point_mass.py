"""The point-mass filter: a belief over places and headings, moved by odometry, weighed by compass and map."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from numpy.typing import NDArray

from torchcaps.core import Number, UserError

from .backend import Backend, Evidence, Match
from .descriptors import Descriptors
from .estimate import Estimate, estimate
from .grid import Grid
from .likelihood import Likelihood, heading_weights
from .motion import MotionNoise, Odometry, Prediction, predict_motion, turn_masses
from .plain import sum_up


@dataclass(frozen=True)
class FilterSettings:
    """Noise and limits of a filter.

    Attributes:
        noise: Of the odometry.
        heading_sigma: Spread of a measured heading in radians.
        converged: Spread of the belief in metres below which an estimate counts.
        restart_after: Updates in a row above that limit, after it was met, before the filter begins anew.
        gate: Share of the belief that an update may leave out to save time; 0 leaves nothing out.
    """

    noise: MotionNoise = field(default_factory=MotionNoise)
    heading_sigma: float = math.radians(3)
    converged: Number = 100.0
    restart_after: int = 20
    gate: Number = 1e-9


class PointMassFilter:
    """A filter on one map, deterministic; the same inputs give the same belief."""

    def __init__(
        self,
        grid: Grid,
        backend: Backend,
        settings: FilterSettings | None = None,
        descriptors: Descriptors | None = None,
        likelihood: Likelihood | None = None,
    ) -> None:
        if descriptors is not None and descriptors.shape != grid.shape:
            raise UserError(f"the map has {descriptors.shape} voxels, the grid {grid.shape}")
        if (descriptors is None) != (likelihood is None):
            raise UserError("map matching needs both descriptors and a likelihood")
        self.grid, self.settings = grid, settings or FilterSettings()
        self._backend, self._descriptors, self._likelihood = backend, descriptors, likelihood
        self.start()

    def start(self, belief: NDArray[np.floating] | None = None) -> None:
        """Begin with a belief, or with all candidates alike."""
        values = np.asarray(self._candidates() if belief is None else belief)
        if values.shape != self.grid.shape:
            raise UserError(f"a belief of this grid has the shape {self.grid.shape}, not {values.shape}")
        mass = values.sum((1, 2), dtype=np.float64)
        if not np.isfinite(mass).all() or mass.sum() <= 0 or values.min() < 0:
            raise UserError("a belief must be finite, not negative, and positive somewhere")
        self._backend.fill(values)
        self._mass, self._peak = mass, float(values.max())
        self._was_converged, self._astray = False, 0

    def _candidates(self) -> NDArray[np.float32]:
        """One for each voxel where the ground of the map is known."""
        known = None if self._descriptors is None else self._descriptors.known
        every = np.ones(self.grid.shape, np.float32)
        return every if known is None else every * known

    def belief(self) -> NDArray[np.float64]:
        """The probability of each voxel as (heading, row, column)."""
        values = self._backend.read().astype(np.float64)
        return values / values.sum()

    def places(self, back: Number = 0.0) -> NDArray[np.float64]:
        """The probability of each cell as (row, column), whatever the heading, `back` metres behind it."""
        values = self._backend.read()
        places = values.sum(0, dtype=np.float64) if back == 0 else _behind(self.grid, values, back)
        return places / max(places.sum(), np.finfo(np.float64).tiny)  # all of it may lie beside the map

    def update(
        self,
        odometry: Odometry,
        heading: Number | None = None,
        descriptor: NDArray[np.floating] | None = None,
    ) -> Estimate:
        """Take over a motion, and the heading and the descriptor of an image where they are there."""
        return self._watch(self.advance(odometry, heading, descriptor))

    def advance(
        self,
        odometry: Odometry,
        heading: Number | None = None,
        descriptor: NDArray[np.floating] | None = None,
    ) -> Estimate:
        """The same for a part of an update, which does not count where a belief stays spread out."""
        prediction = predict_motion(self.grid, odometry, self.settings.noise)
        evidence = Evidence(self._heading_weights(heading), self._match(descriptor))
        evidence, left_out = self._gate(prediction, evidence)
        moments = self._backend.update(prediction, evidence, 1 / self._peak)
        total = moments.mass.sum()
        if not (total > 0 and math.isfinite(total)):
            return self._restart()
        self._mass, self._peak = moments.mass, moments.peak
        found = estimate(self.grid, moments)
        converged = found.sigma < self.settings.converged
        return replace(found, converged=converged, discarded=left_out / (left_out + total))

    def _heading_weights(self, heading: Number | None) -> NDArray[np.float64]:
        if heading is None:
            return np.ones(self.grid.headings)
        weights = heading_weights(self.grid, heading, self.settings.heading_sigma)
        return weights / weights.max()

    def _match(self, descriptor: NDArray[np.floating] | None) -> Match | None:
        if descriptor is None:
            return None
        if self._descriptors is None or self._likelihood is None:
            raise UserError("this filter has no map to compare an image with")
        return Match(self._descriptors, self._descriptors.tables(descriptor), self._likelihood.weights)

    def _gate(self, prediction: Prediction, evidence: Evidence) -> tuple[Evidence, float]:
        """Leave out the headings that together can hold no more than the gate's share of the belief.

        Moving a belief over the map can lose mass but not add any, and a weight of the map is bounded, so
        the masses of the headings bound what is left out.
        """
        arriving = turn_masses(self._mass / self._peak, prediction.heading) * evidence.headings
        order = np.argsort(arriving)
        small = order[np.cumsum(arriving[order]) <= self.settings.gate * arriving.sum()]
        kept = evidence.headings.copy()
        kept[small] = 0.0
        largest = 1.0 if evidence.match is None else float(evidence.match.weights.max())
        return replace(evidence, headings=kept), float(arriving[small].sum()) * largest

    def _watch(self, found: Estimate) -> Estimate:
        """Begin anew when a belief that had converged stays spread out."""
        self._was_converged |= found.converged
        self._astray = self._astray + 1 if self._was_converged and not found.converged else 0
        return self._restart() if self._astray > self.settings.restart_after else found

    def _restart(self) -> Estimate:
        self.start()
        moments = sum_up(torch.from_numpy(self._candidates()))
        return replace(estimate(self.grid, moments), restarted=True)


def _behind(grid: Grid, values: NDArray[np.floating], metres: Number) -> NDArray[np.float64]:
    """The belief about places behind others, summed over headings; what leaves the map is lost."""
    from scipy.ndimage import shift

    places, cells = np.zeros(values.shape[1:]), metres / grid.cell
    for plane, angle in zip(values, grid.heading_centres, strict=True):
        if plane.any():
            away = (-cells * math.sin(angle), -cells * math.cos(angle))
            places += shift(plane.astype(np.float64), away, order=1)
    return places
