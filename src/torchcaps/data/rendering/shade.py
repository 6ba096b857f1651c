"""The colour that each triangle shows: Lambert's law at its middle."""

from __future__ import annotations

import math
from functools import cache

import torch
from jaxtyping import Bool, Float, Int32
from torch import Tensor

from .mesh import Mesh
from .view import View

_STEPS = 1 << 14  # the first is 0.2 grey levels high
_NEAREST = 1e-4  # squared distance of a light that stands on a triangle


def faces_camera(mesh: Mesh, matrices: Float[Tensor, "batch 3 3"], view: View) -> Bool[Tensor, "batch faces"]:
    """Whether the outer side of each triangle is the one that is seen."""
    camera = torch.tensor(view.camera.position, device=matrices.device, dtype=matrices.dtype) @ matrices
    return camera @ mesh.normals.T > (mesh.normals * mesh.centres).sum(1)


def shade_faces(
    mesh: Mesh, matrices: Float[Tensor, "batch 3 3"], view: View
) -> Float[Tensor, "batch faces 3"]:
    """Colours from 0 to 1 as stored in an image; a triangle seen from inside shows its inner side.

    A light of P watts at distance d gives P / (4 pi d^2) watts a square metre, of which a matt surface throws
    1 / pi back to each side. Lights are turned into the frame of the object, so that this is two products of
    matrices for all triangles and rotations.
    """
    centres, normals = mesh.centres, mesh.normals
    side = torch.where(faces_camera(mesh, matrices, view), 1.0, -1.0)
    received = torch.full((*side.shape, 3), view.ambient, device=side.device)
    for light in view.lights:
        position = torch.tensor(light.position, device=side.device) @ matrices  # in the frame of the object
        towards = (position @ normals.T - (centres * normals).sum(1)) * side
        squared = position.square().sum(1, keepdim=True) - 2 * position @ centres.T + centres.square().sum(1)
        squared = squared.clamp(min=_NEAREST)
        inverse = squared.rsqrt()  # cubed, it is several times faster than a power of -1.5
        lambert = light.energy / (4 * math.pi**2) * towards.clamp(min=0) * (inverse * inverse * inverse)
        received += lambert.unsqueeze(-1) * torch.tensor(light.colour, device=side.device)
    return _encoded(received * mesh.colours)


def _encoded(linear: Tensor) -> Tensor:
    """Light as screens encode it, to a quarter of a grey level; a table is faster than powers."""
    places = (linear.clamp(0, 1) * (_STEPS - 1)).round().to(torch.int32)
    return _encoding(linear.device).index_select(0, places.flatten()).view_as(linear)


@cache
def _encoding(device: torch.device) -> Tensor:
    """Encoded values of evenly spaced light (IEC 61966-2-1)."""
    linear = torch.linspace(0, 1, _STEPS, device=device)
    return torch.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear.pow(1 / 2.4) - 0.055)


def pack_colours(colours: Float[Tensor, "*batch 3"], alpha: int) -> Int32[Tensor, "*batch"]:
    """Colours as whole numbers whose bytes are alpha, red, green and blue, the lowest first.

    Sums of such numbers, wrapped at 2^32, undo themselves exactly: alpha in the lowest byte has no carry.
    """
    parts = (colours * 255).round().int()
    return alpha + (parts[..., 0] << 8) + (parts[..., 1] << 16) + (parts[..., 2] << 24)
