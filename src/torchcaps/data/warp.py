"""Rotating, shearing, scaling and moving a batch of images by fractions of a pixel."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from .transforms import uniform


def warp(
    images: Float[Tensor, "batch channels height width"],
    inverse: Float[Tensor, "batch 2 2"],
    move: Float[Tensor, "batch 2"],
    mode: Literal["bilinear", "nearest"] = "bilinear",
) -> Float[Tensor, "batch channels height width"]:
    """The pixel at p comes from `inverse @ (p - move)`; outside the frame is zero.

    Points are (x, y) in pixels from the centre of the image, x to the right and y down.
    """
    height, width = images.shape[2:]
    # affine_grid counts in half widths and half heights, so rows and columns of the matrix are rescaled
    aspect = height / width
    offset = -torch.einsum("bpq,bq->bp", inverse, move)
    rows = [
        torch.stack([inverse[:, 0, 0], inverse[:, 0, 1] * aspect, offset[:, 0] * (2 / width)], dim=1),
        torch.stack([inverse[:, 1, 0] / aspect, inverse[:, 1, 1], offset[:, 1] * (2 / height)], dim=1),
    ]
    grid = F.affine_grid(torch.stack(rows, dim=1), list(images.shape), align_corners=False)
    return F.grid_sample(images, grid, mode=mode, padding_mode="zeros", align_corners=False)


def inverse_map(
    angle: Float[Tensor, " batch"],
    shear: Float[Tensor, " batch"],
    scale: Float[Tensor, "batch 2"],
    squeeze: Float[Tensor, " batch"],
) -> Float[Tensor, "batch 2 2"]:
    """The inverse of: scale x and y, then shear x by `shear` y, then turn, then scale x by `squeeze`.

    `angle` is in degrees, counter-clockwise as one sees the image.
    """
    radians = angle * (math.pi / 180)
    cos, sin = radians.cos(), radians.sin()
    # turning back and undoing the shear, in a frame whose y axis points down
    unturned = torch.stack([cos, -sin, sin, cos], dim=1).view(-1, 2, 2)
    unsheared = torch.stack([unturned[:, 0] - shear[:, None] * unturned[:, 1], unturned[:, 1]], dim=1)
    unsqueezed = torch.stack([unsheared[:, :, 0] / squeeze[:, None], unsheared[:, :, 1]], dim=2)
    return unsqueezed / scale[:, :, None]


@dataclass(frozen=True, kw_only=True)
class AffineLimits:
    """How far a random affine map may go."""

    rotation: float = 0.0  # degrees to each side
    rotation_probability: float = 1.0  # the share of images that turn at all
    rotation_law: Literal["uniform", "normal"] = "uniform"  # normal: a deviation of rotation / 3, clipped
    shear: float = 0.0  # pixels of x per pixel of y, to each side
    scale: float = 0.0  # x and y each by a factor in 1 ± scale
    translation: float = 0.0  # share of the width and height, to each side
    squish: float = 0.0  # width by a factor in 1 - squish .. 1


def affine(
    images: Float[Tensor, "batch channels height width"],
    limits: AffineLimits,
    randomness: torch.Generator | Float[Tensor, "batch 8"],
) -> Float[Tensor, "batch channels height width"]:
    """Images under one random affine map each, sampled once."""
    return warp(images, *draw_affine(images, limits, randomness))


def draw_affine(
    images: Float[Tensor, "batch channels height width"],
    limits: AffineLimits,
    randomness: torch.Generator | Float[Tensor, "batch 8"],
) -> tuple[Float[Tensor, "batch 2 2"], Float[Tensor, "batch 2"]]:
    """The inverse matrices and moves, for `warp`, of one random affine map for each image."""
    draws = uniform(randomness, images, 8)
    signed = 2 * draws - 1
    angle = limits.rotation * (_normal(draws[:, 0]) if limits.rotation_law == "normal" else signed[:, 0])
    angle = torch.where(draws[:, 1] < limits.rotation_probability, angle, 0)
    inverse = inverse_map(
        angle, limits.shear * signed[:, 2], 1 + limits.scale * signed[:, 3:5], 1 - limits.squish * draws[:, 7]
    )
    height, width = images.shape[2:]
    move = limits.translation * torch.stack([width * signed[:, 5], height * signed[:, 6]], dim=1)
    return inverse.to(images.dtype), move.to(images.dtype)


def _normal(draws: Float[Tensor, " batch"]) -> Float[Tensor, " batch"]:
    """Normal numbers with a deviation of 1/3, clipped to [-1, 1]."""
    return (torch.special.ndtri(draws) / 3).clamp(-1, 1)
