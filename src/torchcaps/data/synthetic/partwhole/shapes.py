"""The primitive parts, as signed distances from their outlines: negative inside, in units of their radius."""

from __future__ import annotations

from collections.abc import Callable
from math import cos, pi, sin

import torch
from jaxtyping import Float
from torch import Tensor

Points = Float[Tensor, "batch height width"]
Distance = Callable[[Points, Points], Points]


def _polygon(corners: int) -> Distance:
    """A regular polygon in the unit circle, a corner at the top."""
    inner = cos(pi / corners)
    sides = [pi / corners + 2 * pi * number / corners - pi / 2 for number in range(corners)]

    def distance(x: Points, y: Points) -> Points:
        farthest = x * cos(sides[0]) + y * sin(sides[0])
        for angle in sides[1:]:
            farthest = torch.maximum(farthest, x * cos(angle) + y * sin(angle))
        return farthest - inner

    return distance


def _disc(x: Points, y: Points) -> Points:
    return torch.hypot(x, y) - 0.8


def _ring(x: Points, y: Points) -> Points:
    return (torch.hypot(x, y) - 0.65).abs() - 0.25


def _bar(x: Points, y: Points) -> Points:
    return torch.maximum(x.abs() - 0.95, y.abs() - 0.3)


def _cross(x: Points, y: Points) -> Points:
    across, down = x.abs(), y.abs()
    return torch.minimum(torch.maximum(across - 0.9, down - 0.3), torch.maximum(across - 0.3, down - 0.9))


def _half_disc(x: Points, y: Points) -> Points:
    return torch.maximum(torch.hypot(x, y + 0.4) - 0.9, -(y + 0.4))


def _angle(x: Points, y: Points) -> Points:
    upright = torch.maximum((x + 0.4).abs() - 0.25, y.abs() - 0.75)
    foot = torch.maximum(x.abs() - 0.65, (y - 0.5).abs() - 0.25)
    return torch.minimum(upright, foot)


KINDS: dict[str, Distance] = {  # those before are used first
    "triangle": _polygon(3),
    "square": _polygon(4),
    "disc": _disc,
    "bar": _bar,
    "cross": _cross,
    "ring": _ring,
    "half disc": _half_disc,
    "angle": _angle,
}
