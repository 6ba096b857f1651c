"""A batched rasteriser in PyTorch, on any device: one object in many rotations, with depth and shading."""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from torchcaps.core import rotation_matrices

from .mesh import Mesh
from .shade import faces_camera, pack_colours, shade_faces
from .spans import Spans, expand, spans_of
from .view import View

_NEAR = 1e-3  # nearer triangles are behind the camera
_WORK_AT_ONCE = {"cuda": 1 << 27}  # pixels and triangles of one part of a batch; elsewhere what caches hold
_OPAQUE = 255


class Rendered(NamedTuple):
    """Images, and masks that are 255 where the object is."""

    images: UInt8[Tensor, "batch 3 height width"]
    masks: UInt8[Tensor, "batch 1 height width"]


class _Triangles(NamedTuple):
    """The triangles of a batch that can be seen, one after the other."""

    image: Tensor  # which image each is in
    points: Tensor  # (triangles, 3 corners, column row and inverse depth)
    colours: Tensor  # packed


@torch.no_grad()
def rasterise(mesh: Mesh, rotations: Float[Tensor, "batch 4"], view: View) -> Rendered:
    """Render an object once for each rotation, on the device of the rotations.

    Args:
        mesh: Turned around the origin by each rotation.
        rotations: Unit quaternions (w, x, y, z).
        view: Camera, lights, background and size.
    """
    mesh = mesh.to(rotations.device)
    work = view.height * view.width + 8 * len(mesh.faces)
    at_once = max(1, _WORK_AT_ONCE.get(rotations.device.type, 1 << 20) // work)
    fill = _fill_convex if mesh.is_convex else _fill_nearest
    size = (len(rotations), view.height, view.width + 1)  # spans end one pixel after their last
    packed = torch.empty(size, dtype=torch.int32, device=rotations.device)
    for part, target in zip(
        torch.split(rotations.float(), at_once), torch.split(packed, at_once), strict=True
    ):
        fill(_visible(mesh, part, view), target, view)
    pixels = packed[:, :, : view.width].view(torch.uint8)
    channels = torch.unflatten(pixels, -1, (-1, 4)).permute(0, 3, 1, 2)
    return Rendered(channels[:, 1:], channels[:, :1])


def _visible(mesh: Mesh, rotations: Tensor, view: View) -> _Triangles:
    matrices = rotation_matrices(rotations)
    camera = view.matrix().to(rotations)
    points = mesh.vertices @ (camera[:, :3] @ matrices).mT + camera[:, 3]
    depth = points[..., 2:]
    points = torch.cat((points[..., :2] / depth, 1 / depth), dim=-1)
    is_seen = (depth.squeeze(-1) > _NEAR)[:, mesh.faces].all(-1)
    if mesh.is_closed:
        is_seen &= faces_camera(mesh, matrices, view)
    image, face = is_seen.nonzero(as_tuple=True)
    colours = pack_colours(shade_faces(mesh, matrices, view), _OPAQUE)
    flat = points.flatten(0, 1)
    corners = flat[mesh.faces[face] + (image * len(mesh.vertices)).unsqueeze(1)]
    return _Triangles(image, corners, colours[image, face])


def _background(view: View, device: torch.device) -> Tensor:
    return pack_colours(torch.tensor(view.background, device=device), 0)


def _fill_convex(triangles: _Triangles, target: Tensor, view: View) -> None:
    """Write the packed pixels of triangles that do not hide each other.

    Each span adds its colour where it starts and takes it away where it ends; sums along rows fill it.
    """
    spans = spans_of(triangles.points[..., :2], view.height, view.width)
    background = _background(view, triangles.image.device)
    line = (triangles.image[spans.owner] * view.height + spans.row) * (view.width + 1)
    colours = triangles.colours[spans.owner] - background
    changes = torch.zeros_like(target)
    changes[:, :, 0] = background
    flat = changes.view(-1)
    flat.index_add_(0, line + spans.start, colours)
    flat.index_add_(0, line + spans.end, -colours)
    torch.cumsum(changes, 2, dtype=torch.int32, out=target)


def _fill_nearest(triangles: _Triangles, target: Tensor, view: View) -> None:
    """Write packed pixels, each of the triangle nearest to the camera there."""
    spans = spans_of(triangles.points[..., :2], view.height, view.width)
    base, slope = _depth_of_spans(triangles.points, spans)
    owner, column = expand(spans.start, spans.end)
    nearness = base[owner] + slope[owner] * (column.float() + 0.5)
    line = (triangles.image[spans.owner] * view.height + spans.row) * view.width
    triangle = spans.owner[owner]
    # floats above zero are in the order of their bits: one number holds nearness and triangle
    keys = (nearness.clamp(min=1e-12).view(torch.int32).long() << 32) + triangle
    nearest = torch.zeros(target[:, :, :-1].numel(), dtype=torch.int64, device=keys.device)
    nearest.scatter_reduce_(0, line[owner] + column, keys, "amax")
    colours = torch.cat((triangles.colours, _background(view, keys.device).view(1)))
    chosen = torch.where(nearest > 0, nearest & 0xFFFFFFFF, len(colours) - 1)
    target[:, :, :-1] = colours[chosen].view(-1, view.height, view.width)


def _depth_of_spans(points: Tensor, spans: Spans) -> tuple[Tensor, Tensor]:
    """Inverse depth at column 0 of each span, and its change from a column to the next."""
    a, b, c = points.unbind(1)
    ab, ac = b - a, c - a
    area = ab[:, 0] * ac[:, 1] - ab[:, 1] * ac[:, 0]
    area = torch.where(area.abs() < 1e-12, 1e-12, area)
    along = (ab[:, 2] * ac[:, 1] - ab[:, 1] * ac[:, 2]) / area
    down = (ab[:, 0] * ac[:, 2] - ab[:, 2] * ac[:, 0]) / area
    base = a[:, 2] - along * a[:, 0] - down * a[:, 1]
    owner = spans.owner
    return base[owner] + down[owner] * (spans.row.float() + 0.5), along[owner]
