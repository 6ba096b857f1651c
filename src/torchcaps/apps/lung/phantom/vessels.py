"""Branching vessels of a lung, as tubes."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

_STEMS = 7  # tubes that leave the root of a lung
_SMALLEST = 0.8  # mm of radius


def grow_vessels(
    random: np.random.Generator, root: Float[np.ndarray, " 3"], outwards: float
) -> Float[np.ndarray, "tubes 7"]:
    """Tubes as rows of (begin, end, radius), from the root of a lung to its rim.

    Each tube divides in two, whose cubed radii add up to its own (Murray's law).

    Args:
        random: Where shapes come from.
        root: Where the stems begin.
        outwards: 1 for the left lung, -1 for the right one.
    """
    begin = root + random.normal(0, 6, (_STEMS, 3))
    direction = np.hstack(
        [outwards * random.uniform(0.3, 1, (_STEMS, 1)), random.normal(0, 0.8, (_STEMS, 2))]
    )
    radius = random.uniform(3.0, 5.5, _STEMS)
    grown = []
    while len(radius):
        direction = direction / np.linalg.norm(direction, axis=1, keepdims=True)
        end = begin + direction * (radius * random.uniform(4, 8, len(radius)))[:, None]
        grown.append(np.hstack([begin, end, radius[:, None]]))
        share = random.uniform(0.25, 0.75, len(radius))
        radius = np.concatenate([radius * share ** (1 / 3), radius * (1 - share) ** (1 / 3)])
        begin = np.concatenate([end, end])
        direction = np.concatenate([direction, direction]) + random.normal(0, 0.45, begin.shape)
        is_kept = radius > _SMALLEST
        begin, direction, radius = begin[is_kept], direction[is_kept], radius[is_kept]
    return np.concatenate(grown)


def point_in_tubes(
    random: np.random.Generator, tubes: Float[np.ndarray, "tubes 7"]
) -> Float[np.ndarray, " 3"]:
    """A place on the axis of one of some tubes."""
    tube = tubes[random.integers(len(tubes))]
    return tube[:3] + random.uniform() * (tube[3:6] - tube[:3])


def paint_tubes(
    image: Float[np.ndarray, "rows columns"],
    tubes: Float[np.ndarray, "tubes 7"],
    *,
    level: float,
    corner: tuple[float, float, float],
    spacing: float,
    blur: float,
) -> None:
    """Raise the pixels of an axial plane to `level` where tubes with round ends cross it.

    Args:
        image: Changed in place.
        tubes: Rows of (begin, end, radius), in millimetres (left, posterior, superior).
        level: Hounsfield units inside.
        corner: Millimetres of the first pixel.
        spacing: Of pixels.
        blur: Millimetres over which an edge rises.
    """
    low = np.minimum(tubes[:, :3], tubes[:, 3:6]) - tubes[:, 6:] - blur
    high = np.maximum(tubes[:, :3], tubes[:, 3:6]) + tubes[:, 6:] + blur
    first = np.maximum(np.floor((low - corner) / spacing), 0).astype(int)[:, 1::-1]
    last = np.ceil((high - corner) / spacing).astype(int)[:, 1::-1] + 1
    last = np.minimum(last, image.shape)
    crosses = (low[:, 2] < corner[2]) & (high[:, 2] > corner[2]) & (first < last).all(1)
    y, x = (
        start + spacing * np.arange(count) for start, count in zip(corner[1::-1], image.shape, strict=True)
    )
    for number in np.flatnonzero(crosses):  # without calls: there are hundreds of tubes in a plane
        (top, left), (bottom, right) = first[number], last[number]
        begin, along, radius = tubes[number, :3], tubes[number, 3:6] - tubes[number, :3], tubes[number, 6]
        across, down = x[left:right] - begin[0], y[top:bottom, None] - begin[1]
        up = corner[2] - begin[2]
        share = np.clip((across * along[0] + down * along[1] + up * along[2]) / (along @ along), 0, 1)
        distance = np.sqrt(
            (across - share * along[0]) ** 2 + (down - share * along[1]) ** 2 + (up - share * along[2]) ** 2
        )
        part = image[top:bottom, left:right]
        part += np.clip(0.5 - (distance - radius) / blur, 0, 1) * np.maximum(level - part, 0)
