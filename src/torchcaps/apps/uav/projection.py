"""Places of a projection as longitude and latitude."""

from __future__ import annotations

from collections.abc import Callable

from torchcaps.core import need

ToDegrees = Callable[[float, float], tuple[float, float]]  # place in metres to longitude and latitude


def degrees_of(crs: str) -> ToDegrees:
    """The function that turns places of a projection into longitude and latitude."""
    transform = need("pyproj", "uav").Transformer.from_crs(crs, "EPSG:4326", always_xy=True).transform

    def convert(x: float, y: float) -> tuple[float, float]:
        longitude, latitude = transform(x, y)
        return float(longitude), float(latitude)

    return convert
