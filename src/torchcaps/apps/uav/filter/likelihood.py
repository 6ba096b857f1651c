"""How well what was measured fits: weights of distances of two unit vectors, from 0 to 2, and of headings."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from torchcaps.core import Number, UserError

from .grid import Grid

_ENTRIES = 1024
_FLOOR = 1e-6  # of the weight: one bad image must not make a place impossible
_RAREST = 1e-3  # share of the largest density of other pairs: a lower one is of too few pairs
_ROUNDING = 1e-9  # radians


@dataclass(frozen=True)
class Likelihood:
    """Weights at equally spaced distances from 0 to 2; between them they are interpolated linearly."""

    weights: NDArray[np.float32]

    def __post_init__(self) -> None:
        good = np.isfinite(self.weights).all() and (self.weights > 0).all() and len(self.weights) > 1
        if self.weights.ndim != 1 or not good:
            raise UserError("the weights of a likelihood must be a row of finite positive numbers")


def linear_likelihood() -> Likelihood:
    """The weight (2 - distance) / 2."""
    distances = np.linspace(0, 2, _ENTRIES)
    return Likelihood(_positive((2 - distances) / 2))


def bayesian_likelihood(matching: NDArray[np.floating], others: NDArray[np.floating]) -> Likelihood:
    """The share of matches among pairs at each distance, from distances of matching and of other pairs.

    Both densities are estimated with Gaussian kernels (Scott's rule, reflected at 0 and 2) and have equal
    priors.
    """
    near, far = _densities(matching, others)
    share = near / np.maximum(near + far, np.finfo(np.float64).tiny)
    return Likelihood(_positive(_falling(share, far)))


def ratio_likelihood(
    matching: NDArray[np.floating], others: NDArray[np.floating], exponent: float = 1.0
) -> Likelihood:
    """How much more often matches than other pairs have a distance, to a power.

    The ratio is what the rule of Bayes asks for; the share of matches, `bayesian_likelihood`, levels off
    where matches are many and tells good places from very good ones too little. Images of a flight that show
    the same ground are no independent evidence: an exponent below 1 lets each count for less.
    """
    if not 0 < exponent <= 1:
        raise UserError(f"the exponent of a likelihood lies above 0 and at most at 1, not at {exponent}")
    near, far = _densities(matching, others)
    ratio = _falling(near / np.maximum(far, _RAREST * far.max()), far) ** exponent
    return Likelihood(_positive(ratio / ratio.max()))


def _densities(
    matching: NDArray[np.floating], others: NDArray[np.floating]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The densities of matching and of other pairs at the distances of the weights."""
    near, far = _checked(matching), _checked(others)
    both = np.concatenate([near, far])
    # beyond all pairs the weight stays that of the last pair: there both densities vanish
    at = np.clip(np.linspace(0, 2, _ENTRIES), both.min(), both.max())
    return _density(near, at), _density(far, at)


def _falling(weights: NDArray[np.float64], far: NDArray[np.float64]) -> NDArray[np.float64]:
    """The weights, kept from rising beyond the usual distance of other pairs, where samples are few."""
    usual = int(far.argmax())
    return np.concatenate([weights[:usual], np.minimum.accumulate(weights[usual:])])


def _positive(weights: NDArray[np.floating]) -> NDArray[np.float32]:
    return np.maximum(weights, _FLOOR).astype(np.float32)


def _checked(distances: NDArray[np.floating]) -> NDArray[np.float64]:
    samples = np.asarray(distances, np.float64).ravel()
    if len(samples) < 2 or not np.isfinite(samples).all() or samples.min() < 0 or samples.max() > 2 + 1e-6:
        raise UserError("a density needs at least two finite distances between 0 and 2")
    if np.ptp(samples) == 0:
        raise UserError("all distances are equal: a density cannot be estimated from them")
    return samples


def _density(samples: NDArray[np.float64], at: NDArray[np.float64]) -> NDArray[np.float64]:
    from scipy.stats import gaussian_kde

    kernel = gaussian_kde(samples)
    return kernel(at) + kernel(-at) + kernel(4 - at)


def heading_weights(grid: Grid, measured: Number, sigma: Number) -> NDArray[np.float64]:
    """The von Mises probability of each part of the circle around a measured heading, in radians."""
    if not (math.isfinite(measured) and sigma > 0):
        raise UserError(f"a heading of {measured} rad with a spread of {sigma} rad cannot weigh a belief")
    from scipy.stats import vonmises

    edges = np.arange(grid.headings + 1) * grid.heading_step
    # the distribution function is taken around the measurement, where it keeps its precision
    turned = (edges - measured % (2 * math.pi) + math.pi) % (2 * math.pi) - math.pi
    below = vonmises.cdf(turned, 1 / sigma**2)
    share = np.diff(below)
    passes_end = np.diff(turned) < _ROUNDING  # the only heading of a grid begins where it ends
    return np.where(passes_end, share + 1, share).clip(0)
