"""The cube and the tetrahedron of the thesis, plain or with borders in the colours of their neighbours."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import torch
from torch import Tensor
from torch.nn import functional as F

from .mesh import RADIUS, Mesh, MeshSet, NamedMesh

# Share of the way from an edge to the middle of its face. The thesis shows borders and gives no width: with
# ours a face and its neighbours' colours have about half of its area each, and borders are 2 px at 28x28.
_BORDER = 0.28
_PLAIN = (0.8, 0.8, 0.8)  # Blender's usual grey
_FACE_COLOURS = (
    (0.8, 0.08, 0.06),
    (0.05, 0.55, 0.1),
    (0.06, 0.12, 0.75),
    (0.85, 0.65, 0.05),
    (0.65, 0.1, 0.6),
    (0.05, 0.6, 0.65),
)


def cube(*, borders: bool = True) -> Mesh:
    """A cube with its corners on the sphere of `RADIUS`; see `_solid`."""
    signs = torch.tensor([-1.0, 1.0])
    corners = RADIUS * F.normalize(torch.cartesian_prod(signs, signs, signs), dim=1)
    faces = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
    return _solid(corners, faces, borders=borders)


def tetrahedron(*, borders: bool = True) -> Mesh:
    """A tetrahedron with its corners on the sphere of `RADIUS`; see `_solid`."""
    corners = torch.tensor([[1.0, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]])
    faces = [(1, 3, 2), (0, 2, 3), (0, 3, 1), (0, 1, 2)]
    return _solid(RADIUS * F.normalize(corners, dim=1), faces, borders=borders)


def _solid(corners: Tensor, faces: Sequence[tuple[int, ...]], *, borders: bool) -> Mesh:
    """A convex solid, grey, or with a colour for each face and its neighbours' colours along its edges.

    A single plain face looks the same after a turn about its middle. A border tells which turn it was.
    """
    points = list(corners)
    triangles: list[tuple[int, ...]] = []
    colours: list[tuple[float, ...]] = []
    for number, face in enumerate(faces):
        if not borders:
            _add_polygon(triangles, colours, face, _PLAIN)
            continue
        middle = corners[list(face)].mean(0)
        inner = tuple(len(points) + place for place in range(len(face)))
        points += [corners[corner] + _BORDER * (middle - corners[corner]) for corner in face]
        _add_polygon(triangles, colours, inner, _FACE_COLOURS[number])
        for place in range(len(face)):
            after = (place + 1) % len(face)
            strip = (face[place], face[after], inner[after], inner[place])
            neighbour = _neighbour(faces, number, {face[place], face[after]})
            _add_polygon(triangles, colours, strip, _FACE_COLOURS[neighbour])
    return Mesh(torch.stack(points), torch.tensor(triangles), torch.tensor(colours), True, True)


def _add_polygon(
    triangles: list[tuple[int, ...]],
    colours: list[tuple[float, ...]],
    polygon: tuple[int, ...],
    colour: tuple[float, ...],
) -> None:
    for place in range(1, len(polygon) - 1):
        triangles.append((polygon[0], polygon[place], polygon[place + 1]))
        colours.append(colour)


def _neighbour(faces: Sequence[tuple[int, ...]], number: int, edge: set[int]) -> int:
    return next(other for other, face in enumerate(faces) if other != number and edge <= set(face))


@cache
def cube_tetrahedron(*, borders: bool = True) -> MeshSet:
    """The objects of the thesis's CubeTetrahedron."""
    return MeshSet(
        ("cube", "tetrahedron"),
        (
            NamedMesh("cube", 0, cube(borders=borders)),
            NamedMesh("tetrahedron", 1, tetrahedron(borders=borders)),
        ),
    )
