"""Places of one coordinate system in another, such as longitude and latitude."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torchcaps.core import UserError, need

ToDegrees = Callable[[float, float], tuple[float, float]]  # place in metres to longitude and latitude


def transform_between(source: str, target: str) -> Any:
    """The function that turns places of one coordinate system into another; x or longitude come first."""
    pyproj = need("pyproj", "uav")
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
