"""Rotations as unit quaternions in the order (w, x, y, z); q and -q are the same rotation.

The product `hamilton(p, q)` turns by q first and then by p, as the product of their matrices does.
"""

from __future__ import annotations

import torch
from jaxtyping import Float, Int64
from torch import Tensor
from torch.nn import functional as F

AXIAL_SQUARINGS = 10  # a direction that is weaker by 1 % shrinks to e^-10 of the strongest
_DIGITS = 5  # decimals that two numbers of a rotation have in common where it is the same


def hamilton(p: Float[Tensor, "*#batch 4"], q: Float[Tensor, "*#batch 4"]) -> Float[Tensor, "*batch 4"]:
    """The product of quaternions: of two rotations, that by `q` followed by that by `p`."""
    w1, x1, y1, z1 = p.unbind(-1)
    w2, x2, y2, z2 = q.unbind(-1)
    return torch.stack(
        (
            w1 * w2 - x1 * x2 - y1 * y2 - z1 * z2,
            w1 * x2 + x1 * w2 + y1 * z2 - z1 * y2,
            w1 * y2 - x1 * z2 + y1 * w2 + z1 * x2,
            w1 * z2 + x1 * y2 - y1 * x2 + z1 * w2,
        ),
        dim=-1,
    )


def random_rotations(count: int, rng: torch.Generator) -> Float[Tensor, "{count} 4"]:
    """Uniformly distributed unit quaternions."""
    return F.normalize(torch.randn(count, 4, generator=rng, device=rng.device), dim=1)


def rotation_matrices(rotations: Float[Tensor, "*batch 4"]) -> Float[Tensor, "*batch 3 3"]:
    """The matrices that turn column vectors as unit quaternions do."""
    w, x, y, z = rotations.unbind(-1)
    rows = (
        (1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)),
        (2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)),
        (2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)),
    )
    return torch.stack([torch.stack(row, dim=-1) for row in rows], dim=-2)


def quaternions_of_matrices(matrices: Float[Tensor, "*batch 3 3"]) -> Float[Tensor, "*batch 4"]:
    """Unit quaternions with w >= 0 of rotation matrices.

    Each row of K is the quaternion times one of its components; the longest row loses no digits.
    """
    m = matrices
    xx, yy, zz = m[..., 0, 0], m[..., 1, 1], m[..., 2, 2]
    wx, wy, wz = m[..., 2, 1] - m[..., 1, 2], m[..., 0, 2] - m[..., 2, 0], m[..., 1, 0] - m[..., 0, 1]
    xy, xz, yz = m[..., 0, 1] + m[..., 1, 0], m[..., 0, 2] + m[..., 2, 0], m[..., 1, 2] + m[..., 2, 1]
    rows = (
        (1 + xx + yy + zz, wx, wy, wz),
        (wx, 1 + xx - yy - zz, xy, xz),
        (wy, xy, 1 - xx + yy - zz, yz),
        (wz, xz, yz, 1 - xx - yy + zz),
    )
    k = torch.stack([torch.stack(row, dim=-1) for row in rows], dim=-2)
    return with_positive_w(F.normalize(_strongest_row(k), dim=-1))


def _strongest_row(k: Tensor) -> Tensor:
    """The row of a symmetric matrix whose diagonal element is the largest."""
    strongest = k.diagonal(dim1=-2, dim2=-1).argmax(-1)
    index = strongest[..., None, None].expand(*k.shape[:-2], 1, k.shape[-1])
    return k.gather(-2, index).squeeze(-2)


def with_positive_w(rotations: Float[Tensor, "*batch 4"]) -> Float[Tensor, "*batch 4"]:
    """Of q and -q, the one whose first component is not negative."""
    return torch.where(rotations[..., :1] < 0, -rotations, rotations)


def quaternions_of_euler(degrees: Float[Tensor, "*batch 3"]) -> Float[Tensor, "*batch 4"]:
    """Unit quaternions of the thesis's Euler angles: about x, then y, then z, all fixed axes."""
    half = torch.deg2rad(degrees) / 2
    cos, sin, none = half.cos(), half.sin(), torch.zeros_like(half[..., 0])
    about_x = torch.stack((cos[..., 0], sin[..., 0], none, none), dim=-1)
    about_y = torch.stack((cos[..., 1], none, sin[..., 1], none), dim=-1)
    about_z = torch.stack((cos[..., 2], none, none, sin[..., 2]), dim=-1)
    return hamilton(about_z, hamilton(about_y, about_x))


def euler_of_quaternions(rotations: Float[Tensor, "*batch 4"]) -> Float[Tensor, "*batch 3"]:
    """Euler angles in degrees, about x, then y, then z; where y is +-90 degrees, z is 0."""
    m = rotation_matrices(rotations)
    cos_y = torch.hypot(m[..., 0, 0], m[..., 1, 0])
    is_locked = cos_y < 100 * torch.finfo(m.dtype).eps
    x = torch.where(
        is_locked, torch.atan2(-m[..., 1, 2], m[..., 1, 1]), torch.atan2(m[..., 2, 1], m[..., 2, 2])
    )
    y = torch.atan2(-m[..., 2, 0], cos_y)
    z = torch.where(is_locked, 0.0, torch.atan2(m[..., 1, 0], m[..., 0, 0]))
    return torch.rad2deg(torch.stack((x, y, z), dim=-1))


def euler_grid(step: int = 20, *, repeated: bool = True) -> Float[Tensor, "count 3"]:
    """The thesis's angles in degrees: every multiple of `step` from 0 to 360 about each axis.

    With a step of 20 these are 19^3 = 6,859 triples. 1,027 of them differ from another by 360 degrees alone.
    Of the 5,832 others, (x, y, z) and (x + 180, 180 - y, z + 180) are the same rotation: 2,916 are left when
    `repeated` is False.
    """
    axis = torch.arange(0, 361, step, dtype=torch.float64)
    triples = torch.cartesian_prod(axis, axis, axis)
    if not repeated:
        triples = triples[first_of_each(quaternions_of_euler(triples))]
    return triples.float()


def first_of_each(rotations: Float[Tensor, "count 4"], digits: int = _DIGITS) -> Int64[Tensor, " distinct"]:
    """The places, ascending, where a rotation occurs for the first time, to so many digits."""
    return torch.unique(_first_places(rotations, digits))


def distinct_numbers(rotations: Float[Tensor, "count 4"]) -> Int64[Tensor, " count"]:
    """A number for each rotation, the same where it is repeated, counted by the first occurrences."""
    return torch.unique(_first_places(rotations, _DIGITS), return_inverse=True)[1]


def _first_places(rotations: Tensor, digits: int) -> Tensor:
    """For each rotation the place where it occurs for the first time."""
    _, group = torch.unique(_signless(rotations, digits), dim=0, return_inverse=True)
    first = torch.full((int(group.max()) + 1,), len(rotations), device=group.device)
    places = torch.arange(len(rotations), device=group.device)
    return first.scatter_reduce(0, group, places, "amin")[group]


def _signless(rotations: Tensor, digits: int) -> Tensor:
    """Quaternions as whole numbers, the first that is not zero positive."""
    scaled = (rotations.double() * 10**digits).round()
    leading = (scaled != 0).double().argmax(1, keepdim=True)
    return (scaled * scaled.gather(1, leading).sign()).long()


def rotation_angle(
    predicted: Float[Tensor, "*#batch 4"], true: Float[Tensor, "*#batch 4"]
) -> Float[Tensor, "*batch"]:
    """The angle of the rotation between two, in degrees, from 0 to 180; for measuring, not for training."""
    sign = torch.where((predicted * true).sum(-1, keepdim=True) < 0, -1.0, 1.0)
    apart = torch.linalg.vector_norm(predicted - sign * true, dim=-1)
    along = torch.linalg.vector_norm(predicted + sign * true, dim=-1)
    return torch.rad2deg(4 * torch.atan2(apart, along))  # acos would lose half of the digits of small angles


def rotations_of_6d(numbers: Float[Tensor, "*batch 6"]) -> Float[Tensor, "*batch 4"]:
    """Rotations whose matrices begin with two columns, made orthonormal (Zhou 2019, eq. 15).

    Unlike four numbers, six are a continuous image of all rotations.
    """
    first = F.normalize(numbers[..., :3], dim=-1)
    second = numbers[..., 3:] - (first * numbers[..., 3:]).sum(-1, keepdim=True) * first
    second = F.normalize(second, dim=-1)
    third = torch.linalg.cross(first, second)
    return quaternions_of_matrices(torch.stack((first, second, third), dim=-1))


def axial_mean(
    vectors: Float[Tensor, "*batch count size"], weights: Float[Tensor, "*batch count"]
) -> Float[Tensor, "*batch size"]:
    """The unit vector nearest to the lines through `vectors`, of either sign (Markley 2007, eq. 13).

    Of unit quaternions it is the mean rotation. It is the strongest eigenvector of the weighted scatter
    matrix, found by squaring that matrix: no step waits for the device, and equal eigenvalues have gradients.
    """
    scatter = (weights.unsqueeze(-1) * vectors).transpose(-2, -1) @ vectors
    for _ in range(AXIAL_SQUARINGS):
        scatter = scatter / scatter.diagonal(dim1=-2, dim2=-1).sum(-1)[..., None, None].clamp(min=1e-30)
        scatter = scatter @ scatter
    return F.normalize(_strongest_row(scatter), dim=-1)
