"""What a belief says: the mean place and heading, and how far the belief is spread."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from .backend import Moments
from .grid import Grid


@dataclass(frozen=True)
class Estimate:
    """The mean of a belief.

    Attributes:
        x: Metres to the east, in the map's projection.
        y: Metres to the north.
        heading: Radians, counter-clockwise from east.
        sigma: Root mean square distance of the belief from its mean, in metres.
        converged: Whether sigma is below the limit of the filter.
        discarded: Upper bound of the share of the belief that the update left out.
        restarted: Whether this update began anew from a uniform belief.
    """

    x: float
    y: float
    heading: float
    sigma: float
    converged: bool = False
    discarded: float = 0.0
    restarted: bool = False


def estimate(grid: Grid, moments: Moments) -> Estimate:
    """Mean and spread from the sums of a belief."""
    total = moments.mass.sum()
    column, row = moments.x.sum() / total, moments.y.sum() / total
    variance = moments.square.sum() / total - column**2 - row**2
    east, north = (float(moments.mass @ part(grid.heading_centres)) for part in (np.cos, np.sin))
    return Estimate(
        x=float(grid.west + (column + 0.5) * grid.cell),
        y=float(grid.south + (row + 0.5) * grid.cell),
        heading=math.atan2(north, east) % (2 * math.pi),
        sigma=grid.cell * math.sqrt(max(variance, 0.0)),
    )
