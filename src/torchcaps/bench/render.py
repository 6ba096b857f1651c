"""Suite `render`: images of objects in random rotations, by every engine of this machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import torch
from torch import Tensor
from torch.nn import functional as F

from torchcaps.core import UserError, random_rotations
from torchcaps.data.rendering import RADIUS, Mesh, Rendered, View, cube, rasterise

from .bench import Bench, Measurement
from .timing import Work

_DIVISIONS = 4  # of an icosahedron: 20 * 4^4 = 5,120 faces
Draw = Callable[[Mesh, Tensor, View], Rendered]


def render_suite(
    bench: Bench, *, quick: bool = False, side: int = 128, divisions: int = _DIVISIONS
) -> Iterator[Measurement]:
    """A cube and a ball of many faces, in PyTorch on the device and in OpenGL where it starts.

    Args:
        bench: Where it will be measured.
        quick: Smaller batches.
        side: Of the images.
        divisions: How often the faces of an icosahedron are divided by four.
    """
    is_gpu = bench.device.type == "cuda"
    ball = sphere(divisions)
    objects = {"cube": cube(borders=False), "cube with borders": cube(), f"{len(ball.faces):,} faces": ball}
    for name, mesh in objects.items():
        most = (4096 if is_gpu else 1024) if mesh.is_convex else (1024 if is_gpu else 128)
        batch = most // 4 if quick else most
        for backend, draw in _engines().items():
            yield Measurement(
                case=f"render {name}, {side} px",
                backend=backend,
                batch=batch,
                build=partial(_build, draw, mesh, batch, View(height=side, width=side), bench),
                skip=draw if isinstance(draw, str) else None,
            )


def sphere(divisions: int) -> Mesh:
    """A ball of triangles of nearly one size."""
    golden = (1 + 5**0.5) / 2
    corners = [(0.0, a, b * golden) for a in (-1, 1) for b in (-1, 1)]
    points = torch.tensor([corner[k:] + corner[:k] for corner in corners for k in range(3)])
    near = torch.cdist(points, points)
    edge = near[near > 0].min() * 1.01
    faces = [
        (i, j, k)
        for i in range(12)
        for j in range(i + 1, 12)
        for k in range(j + 1, 12)
        if max(near[i, j], near[j, k], near[i, k]) < edge
    ]
    triangles = F.normalize(points, dim=1)[torch.tensor(faces)]
    for _ in range(divisions):
        a, b, c = triangles.unbind(1)
        ab, bc, ca = (F.normalize(x + y, dim=1) for x, y in ((a, b), (b, c), (c, a)))
        parts = ((a, ab, ca), (ab, b, bc), (ca, bc, c), (ab, bc, ca))
        triangles = torch.cat([torch.stack(part, dim=1) for part in parts])
    a, b, c = triangles.unbind(1)
    is_inward = (torch.linalg.cross(b - a, c - a) * a).sum(1) < 0
    triangles[is_inward] = triangles[is_inward].flip(1)
    rounded = (triangles.flatten(0, 1) * 1e4).round()  # triangles share their corners, as in a file
    shared, numbers = torch.unique(rounded, dim=0, return_inverse=True)
    grey = torch.full((len(triangles), 3), 0.8)
    return Mesh(RADIUS * F.normalize(shared, dim=1), numbers.view(-1, 3), grey, is_closed=True)


def _engines() -> dict[str, Draw | str]:
    """What draws, by the name of its backend, or why it does not."""
    try:
        from torchcaps.apps.pose import opengl_renderer

        return {"torch": rasterise, "opengl": opengl_renderer()}
    except (UserError, ModuleNotFoundError) as error:
        return {"torch": rasterise, "opengl": str(error)}


def _build(draw: Draw | str, mesh: Mesh, batch: int, view: View, bench: Bench) -> Work:
    rotations = random_rotations(batch, torch.Generator().manual_seed(0)).to(bench.device)
    mesh = mesh.to(bench.device)
    assert not isinstance(draw, str)  # such a measurement is skipped
    return lambda: draw(mesh, rotations, view)
