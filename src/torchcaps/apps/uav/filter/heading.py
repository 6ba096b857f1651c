"""The weight of each heading given a compass."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from torchcaps.core import Number, UserError

from .grid import Grid

_ROUNDING = 1e-9  # radians


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
