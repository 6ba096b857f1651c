"""Branching vessels of a lung, as tapering tubes."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float
from numpy.typing import NDArray

_SMALLEST = 0.6  # mm of radius
_SEGMENTS_AT_MOST = 1500


def grow_vessels(
    random: np.random.Generator, root: Float[np.ndarray, " 3"], outwards: float, *, stems: int = 7
) -> Float[np.ndarray, "segments 7"]:
    """Tubes as rows of (begin, end, radius), from the root of a lung to its rim.

    Each tube divides in two, whose cubed radii add up to its own (Murray's law).

    Args:
        random: Where shapes come from.
        root: Where the stems begin.
        outwards: 1 for the left lung, -1 for the right one.
        stems: Tubes that leave the root.
    """
    waiting = []
    for _ in range(stems):
        direction = _unit(np.array([outwards * random.uniform(0.3, 1), *random.normal(0, 0.8, 2)]))
        waiting.append((root + random.normal(0, 6, 3), direction, random.uniform(3.0, 5.5)))
    tubes: list[NDArray[np.float64]] = []
    while waiting and len(tubes) < _SEGMENTS_AT_MOST:
        begin, direction, radius = waiting.pop(0)
        end = begin + direction * radius * random.uniform(4, 8)
        tubes.append(np.array([*begin, *end, radius]))
        share = random.uniform(0.25, 0.75)
        for part in (share, 1 - share):
            thinner = radius * part ** (1 / 3)
            if thinner > _SMALLEST:
                waiting.append((end, _unit(direction + random.normal(0, 0.45, 3)), thinner))
    return np.stack(tubes)


def _unit(vector: NDArray[np.float64]) -> NDArray[np.float64]:
    return vector / np.sqrt(vector @ vector)


def tube_depth(
    points: Float[np.ndarray, "*shape 3"], tube: Float[np.ndarray, " 7"]
) -> Float[np.ndarray, "*shape"]:
    """Millimetres to the surface of a tube with round ends; negative inside."""
    begin, along = tube[:3], tube[3:6] - tube[:3]
    offset = points - begin
    share = np.clip(offset @ along / max(float(along @ along), 1e-9), 0, 1)
    return np.linalg.norm(offset - share[..., None] * along, axis=-1) - tube[6]
