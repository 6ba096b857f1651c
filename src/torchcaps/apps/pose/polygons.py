"""Polygons of mesh files cut into triangles; readers of meshes cut concave ones as if they were convex."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from torchcaps.core import UserError

Point = tuple[float, float]
Flat = list[Point]
Triangle = tuple[int, int, int]
Polygons: TypeAlias = NDArray[Any] | Sequence[Sequence[int]]  # the corners of each; a table of alike ones
_STRAIGHT = 1e-9  # of the area of a polygon: a smaller turn to the other side is rounding


class _Polygon(NamedTuple):
    """A face of more than three corners: its line, its words and the numbers of its corners."""

    line: int
    words: list[str]
    corners: list[int]


def cut_concave(text: str, path: Path) -> str:
    """The text of the OBJ file at `path`, with its concave polygons as triangles where it has some."""
    lines = text.replace("\\\r\n", " ").replace("\\\n", " ").splitlines()
    corners, polygons = _read(lines)
    cuts = _cut_each(
        corners,
        [polygon.corners for polygon in polygons],
        lambda number: f"{path}: the polygon of line {polygons[number].line + 1}",
    )
    for number, triangles in cuts.items():
        words = polygons[number].words
        cut = ("f " + " ".join(words[corner] for corner in each) for each in triangles)
        lines[polygons[number].line] = "\n".join(cut)
    return "\n".join(lines) + "\n" if cuts else text


def triangulate(
    corners: NDArray[np.float64], polygons: Polygons, path: Path
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Triangles that fill the polygons of a file, and the number of the polygon that each is of."""
    named = np.concatenate([np.empty(0, np.int64), *polygons])
    if len(named) and not 0 <= named.min() <= named.max() < len(corners):  # others count from the end
        raise UserError(f"{path} is damaged: a face names a corner that is not there")
    if len(named) == 3 * len(polygons) and all(len(polygon) == 3 for polygon in polygons):
        return named.reshape(-1, 3).astype(np.int64), np.arange(len(polygons))
    cuts = _cut_each(corners, polygons, lambda number: f"{path}: face {number + 1}")
    triangles, owners = [], []
    for number, polygon in enumerate(polygons):
        inner = cuts.get(number) or [(0, place, place + 1) for place in range(1, len(polygon) - 1)]
        triangles += [[polygon[place] for place in each] for each in inner]
        owners += [number] * len(inner)
    return np.array(triangles, np.int64).reshape(-1, 3), np.array(owners, np.int64)


def _cut_each(
    corners: NDArray[np.float64], polygons: Polygons, name: Callable[[int], str]
) -> dict[int, list[Triangle]]:
    """The triangles of each concave polygon by its number; they name places in the polygon."""
    by_length: dict[int, list[int]] = defaultdict(list)
    for number, polygon in enumerate(polygons):
        if len(polygon) > 3:
            by_length[len(polygon)].append(number)
    found = {}
    for numbers in by_length.values():
        points = corners[np.array([polygons[number] for number in numbers])]
        normals = _normals(points)
        for place in np.flatnonzero(_is_concave(points, normals)):
            triangles = _ears(_flattened(points[place], normals[place]))
            if not triangles:
                raise UserError(
                    f"{name(numbers[place])} crosses itself; cut its faces into triangles, for example with "
                    "Triangulate Faces in Blender"
                )
            found[numbers[place]] = triangles
    return found


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


def _flattened(points: NDArray[np.float64], normal: NDArray[np.float64]) -> Flat:
    """A polygon seen along the axis nearest to its normal, counter-clockwise."""
    axis = int(np.abs(normal).argmax())
    across, up = ((axis + 1) % 3, (axis + 2) % 3) if normal[axis] > 0 else ((axis + 2) % 3, (axis + 1) % 3)
    return [(float(point[across]), float(point[up])) for point in points]


def _ears(flat: Flat) -> list[Triangle]:
    """The triangles of a simple polygon, each cut off at a corner that no other lies in; none if it fails."""
    left, found = list(range(len(flat))), []
    straight = _STRAIGHT * sum(_turn(flat[0], b, c) for b, c in pairwise(flat[1:]))
    place = tried = 0
    while len(left) > 3:
        if tried == len(left):
            return []
        place %= len(left)
        ear = left[place - 1], left[place], left[(place + 1) % len(left)]
        if _is_ear(flat, ear, left, straight):
            found.append(ear)
            del left[place]
            tried = 0
        else:
            place, tried = place + 1, tried + 1
    last = left[0], left[1], left[2]
    return [*found, last] if _turn(*(flat[corner] for corner in last)) >= -straight else []


def _is_ear(flat: Flat, ear: Triangle, left: list[int], straight: float) -> bool:
    a, b, c = (flat[corner] for corner in ear)
    area = _turn(a, b, c)
    if area <= straight:
        return area >= -straight  # on one line: cutting it off changes nothing
    others = (flat[corner] for corner in left if flat[corner] not in (a, b, c))
    return not any(min(_turn(a, b, p), _turn(b, c, p), _turn(c, a, p)) >= 0 for p in others)


def _turn(a: Point, b: Point, c: Point) -> float:
    """Twice the area of a triangle, negative where it is clockwise."""
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])
