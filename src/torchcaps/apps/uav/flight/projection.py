"""Places of one coordinate system in another, such as longitude and latitude."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from torchcaps.core import UserError, need

ToDegrees = Callable[[float, float], tuple[float, float]]  # place in metres to longitude and latitude
_STEP = 10.0  # metres


def transform_between(source: str, target: str) -> Any:
    """The function that turns places of one coordinate system into another; x or longitude come first."""
    pyproj = need("pyproj")
    try:
        return pyproj.Transformer.from_crs(source, target, always_xy=True).transform
    except pyproj.exceptions.ProjError as error:
        raise UserError(
            f"there is no way from {source[:80]!r} to {target[:80]!r}: {str(error)[:200]}"
        ) from error


def degrees_of(crs: str) -> ToDegrees:
    """The function that turns places of a projection into longitude and latitude."""
    transform = transform_between(crs, "EPSG:4326")

    def convert(x: float, y: float) -> tuple[float, float]:
        longitude, latitude = transform(x, y)
        return float(longitude), float(latitude)

    return convert


def compass_of_grid(to_degrees: ToDegrees, x: float, y: float) -> float:
    """The compass at which the y axis of a projection points at a place, in radians to the right of north.

    It is 0 on the central meridian alone, below 3 degrees in UTM, and 10 or more in projections of large
    countries. The flattening of the earth, which is left out, changes it by less than 0.1 degrees.
    """
    longitude, latitude = to_degrees(x, y)
    end_longitude, end_latitude = to_degrees(x, y + _STEP)
    east = math.remainder(end_longitude - longitude, 360.0) * math.cos(math.radians(latitude))
    return math.atan2(east, end_latitude - latitude)
