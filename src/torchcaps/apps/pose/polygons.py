"""Polygons of mesh files cut into triangles; readers of meshes cut concave ones as if they were convex."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from torchcaps.core import UserError

Triangle = tuple[int, int, int]
Polygons: TypeAlias = NDArray[Any] | Sequence[Sequence[int]]  # the corners of each; a table of alike ones
_STRAIGHT = 1e-9  # of the area of a polygon: a smaller turn to the other side is rounding
_MOST_LOOKS = 100_000_000  # at a corner while another is tried: seconds; long outlines that wind need more
_TRY = 1000  # looks that take as long as what else a try does
_UNCUT = (
    "crosses itself or has too many corners; cut its faces into triangles, for example with Triangulate "
    "Faces in Blender"
)


class _Polygon(NamedTuple):
    """A face of more than three corners: its line, its words and the numbers of its corners."""

    line: int
    words: list[str]
    corners: list[int]


def cut_concave(text: str, path: Path) -> str:
    """The text of the OBJ file at `path`, with its concave polygons as triangles where it has some."""
    lines = text.replace("\\\r\n", " ").replace("\\\n", " ").splitlines()
    corners, polygons = _read(lines)
    has_changed = False
    for numbers in _by_length([polygon.corners for polygon in polygons]).values():
        group = [polygons[number] for number in numbers]
        for place, triangles in _cut_concave(corners[np.array([each.corners for each in group])]):
            polygon = group[place]
            if not triangles:
                raise UserError(f"{path}: the polygon of line {polygon.line + 1} {_UNCUT}")
            cut = ("f " + " ".join(polygon.words[corner] for corner in each) for each in triangles)
            lines[polygon.line] = "\n".join(cut)
            has_changed = True
    return "\n".join(lines) + "\n" if has_changed else text


def triangulate(
    corners: NDArray[np.float64], polygons: Polygons, path: Path
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Triangles that fill the polygons of a file, and the number of the polygon that each is of."""
    found, owners = [np.empty((0, 3), np.int64)], [np.empty(0, np.int64)]
    for length, numbers in _by_length(polygons).items():
        table = np.array([polygons[number] for number in numbers], np.int64)
        if table.size and not 0 <= table.min() <= table.max() < len(corners):  # others count from the end
            raise UserError(f"{path} is damaged: a face names a corner that is not there")
        fan = np.array([(0, place, place + 1) for place in range(1, length - 1)], np.int64).reshape(-1, 3)
        inner = np.repeat(fan[None], len(table), axis=0)
        for place, triangles in _cut_concave(corners[table]) if length > 3 else ():
            if not triangles:
                raise UserError(f"{path}: face {numbers[place] + 1} {_UNCUT}")
            inner[place] = triangles
        found.append(table[np.arange(len(table))[:, None, None], inner].reshape(-1, 3))
        owners.append(np.repeat(numbers, len(fan)))
    of_polygon = np.concatenate(owners)
    order = of_polygon.argsort(kind="stable")
    return np.concatenate(found)[order], of_polygon[order]


def _by_length(polygons: Polygons) -> dict[int, list[int]]:
    """The numbers of the polygons that have so many corners."""
    found: dict[int, list[int]] = defaultdict(list)
    for number, polygon in enumerate(polygons):
        found[len(polygon)].append(number)
    return found


def _cut_concave(points: NDArray[np.float64]) -> Iterator[tuple[int, list[Triangle]]]:
    """Where polygons (count, corners, 3) are concave, and their triangles; none where they cannot be cut."""
    normals = _normals(points)
    for place in np.flatnonzero(_is_concave(points, normals)):
        yield int(place), _ears(_flattened(points[place], normals[place]))


def _read(lines: list[str]) -> tuple[NDArray[np.float64], list[_Polygon]]:
    corners: list[list[str]] = []
    polygons = []
    for number, line in enumerate(lines):
        kind = line[:2].rstrip()
        if kind == "v":
            corners.append(line.split()[1:4])
        elif kind == "f":
            words = line.split("#")[0].split()[1:]
            if len(words) > 3:
                named = [int(word.split("/")[0]) for word in words]  # negative ones count from the last
                places = [each - 1 if each > 0 else len(corners) + each for each in named]
                polygons.append(_Polygon(number, words, places))
    known = [each for each in polygons if min(each.corners) >= 0 and max(each.corners) < len(corners)]
    return np.array(corners, np.float64) if known else np.empty((0, 3)), known


def _normals(points: NDArray[np.float64]) -> NDArray[np.float64]:
    """Twice the areas of polygons (count, corners, 3) as vectors, by the rule of Newell."""
    with np.errstate(invalid="ignore", over="ignore"):
        apart = points - points[:, :1]
        return np.cross(apart, np.roll(apart, -1, axis=1)).sum(1)


def _is_concave(points: NDArray[np.float64], normals: NDArray[np.float64]) -> NDArray[np.bool_]:
    with np.errstate(invalid="ignore", over="ignore"):  # the reader of the mesh says what is not finite
        edges = np.roll(points, -1, axis=1) - points
        turns = np.cross(edges, np.roll(edges, -1, axis=1))
        along = np.einsum("pck,pk->pc", turns, normals)
        return np.asarray((along < -_STRAIGHT * np.square(normals).sum(1)[:, None]).any(1))


def _flattened(points: NDArray[np.float64], normal: NDArray[np.float64]) -> NDArray[np.float64]:
    """A polygon (corners, 2) seen along the axis nearest to its normal, counter-clockwise."""
    axis = int(np.abs(normal).argmax())
    across, up = ((axis + 1) % 3, (axis + 2) % 3) if normal[axis] > 0 else ((axis + 2) % 3, (axis + 1) % 3)
    return points[:, [across, up]]


def _ears(points: NDArray[np.float64]) -> list[Triangle]:
    """The triangles of a simple polygon, each cut off at a corner that no other lies in; none if it fails."""
    left, found = list(range(len(points))), []
    is_left = np.ones(len(points), bool)
    first, *others = points.tolist()
    straight = _STRAIGHT * sum(_turn(first, b, c) for b, c in pairwise(others))
    place = tried = looks = 0
    while len(left) > 3:
        looks += _TRY + len(left)
        if tried == len(left) or looks > _MOST_LOOKS:
            return []
        place %= len(left)
        ear = left[place - 1], left[place], left[(place + 1) % len(left)]
        if _is_ear(ear, points, is_left, straight):
            found.append(ear)
            is_left[left.pop(place)] = False
            tried = 0
        else:
            place, tried = place + 1, tried + 1
    last = left[0], left[1], left[2]
    return [*found, last] if _turn(*points[left].tolist()) >= -straight else []


def _is_ear(ear: Triangle, points: NDArray[np.float64], is_left: NDArray[np.bool_], straight: float) -> bool:
    a, b, c = points[list(ear)].tolist()
    area = _turn(a, b, c)
    if area <= straight:
        return area >= -straight  # on one line: cutting it off changes nothing
    x, y = points[is_left].T
    is_inside = np.logical_and.reduce(
        [
            (q[0] - p[0]) * (y - p[1]) - (q[1] - p[1]) * (x - p[0]) >= -straight
            for p, q in ((a, b), (b, c), (c, a))
        ]
    )
    is_own = np.logical_or.reduce([(x == p[0]) & (y == p[1]) for p in (a, b, c)])
    return not (is_inside & ~is_own).any()


def _turn(a: Sequence[float], b: Sequence[float], c: Sequence[float]) -> float:
    """Twice the area of a triangle, negative where it is clockwise."""
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])
