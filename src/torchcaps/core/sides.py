"""Height and width, which one number gives for a square."""

from __future__ import annotations

from typing import TypeAlias

Sides: TypeAlias = int | tuple[int, int]  # of a square, or height and width


def sides(size: Sides) -> tuple[int, int]:
    """Height and width."""
    return (size, size) if isinstance(size, int) else (size[0], size[1])
