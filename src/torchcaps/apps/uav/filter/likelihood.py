"""How well an image fits a place: a weight for each distance of two unit vectors, from 0 to 2."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from torchcaps.core import UserError

_ENTRIES = 1024
_FLOOR = 1e-6  # of the weight: one bad image must not make a place impossible


@dataclass(frozen=True)
class Likelihood:
    """Weights at equally spaced distances from 0 to 2; between them they are interpolated linearly."""

    weights: NDArray[np.float32]
    name: str

    def __post_init__(self) -> None:
        good = np.isfinite(self.weights).all() and (self.weights > 0).all() and len(self.weights) > 1
        if self.weights.ndim != 1 or not good:
            raise UserError("the weights of a likelihood must be a row of finite positive numbers")


def linear_likelihood() -> Likelihood:
    """The weight (2 - distance) / 2."""
    distances = np.linspace(0, 2, _ENTRIES)
    return Likelihood(_positive((2 - distances) / 2), "linear")


def bayesian_likelihood(matching: NDArray[np.floating], others: NDArray[np.floating]) -> Likelihood:
    """The share of matches among pairs at each distance, from distances of matching and of other pairs.

    Both densities are estimated with Gaussian kernels (Scott's rule, reflected at 0 and 2) and have equal
    priors.
    """
    near_samples, far_samples = _checked(matching), _checked(others)
    both = np.concatenate([near_samples, far_samples])
    # beyond all pairs the weight stays that of the last pair: there both densities vanish
    at = np.clip(np.linspace(0, 2, _ENTRIES), both.min(), both.max())
    near, far = _density(near_samples, at), _density(far_samples, at)
    share = near / np.maximum(near + far, np.finfo(np.float64).tiny)
    usual = int(far.argmax())  # beyond the usual distance of other pairs few samples are left: no rise there
    share[usual:] = np.minimum.accumulate(share[usual:])
    return Likelihood(_positive(share), "bayesian")


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
