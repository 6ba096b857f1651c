"""Height and width, which one number gives for a square."""

from __future__ import annotations

from typing import TypeAlias

ImageSize: TypeAlias = int | tuple[int, int]  # the side of a square, or height and width
Sides: TypeAlias = tuple[int, int]  # height and width


def sides(size: ImageSize) -> Sides:
    """Height and width."""
    return (size, size) if isinstance(size, int) else (size[0], size[1])
