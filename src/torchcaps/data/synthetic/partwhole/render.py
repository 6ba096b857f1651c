"""Painting scenes: clouds, then distractors, then the parts, each with a mask of the pixels it is seen on."""

from __future__ import annotations

from math import pi

import torch
from jaxtyping import Float, UInt8
from torch import Tensor
from torch.nn import functional as F

from .design import Design
from .scene import KNOTS, Scene, num_parts
from .shapes import KINDS, Distance

_DARK, _BRIGHT = 0.6, 1.0  # shades of parts
_STRIPES = 2.5  # along a part at most


def paint(
    scene: Scene, design: Design
) -> tuple[UInt8[Tensor, "batch 1 height width"], UInt8[Tensor, "batch height width"]]:
    """Images, and for each pixel the number of what is seen there, on the device of the scene.

    Later shapes cover earlier ones. A pixel at an outline mixes both sides and belongs to the one that
    covers more of it.
    """
    parts = num_parts(design)
    canvas = _clouds(scene.clouds, design)
    owners = torch.zeros_like(canvas, dtype=torch.uint8)  # 0 is background; parts follow, then distractors
    kinds = list(KINDS.values())[: design.branches[0]]
    for number in range(scene.loose.shape[1]):
        cover, colour = _shape(
            scene.loose[:, number], kinds[number % len(kinds)], scene.looks[:, parts + number], design
        )
        cover = cover * scene.present[:, number, None, None]
        canvas = torch.lerp(canvas, colour, cover)
        owners.masked_fill_(cover > 0.5, 1 + parts + number)
    for number in range(parts):
        cover, colour = _shape(
            scene.poses[:, number], kinds[number % len(kinds)], scene.looks[:, number], design
        )
        canvas = torch.lerp(canvas, colour, cover)
        owners.masked_fill_(cover > 0.5, 1 + number)
    return (canvas * 255).round().to(torch.uint8).unsqueeze(1), owners


def _shape(
    pose: Tensor, distance: Distance, looks: Tensor, design: Design
) -> tuple[Float[Tensor, "batch height width"], Float[Tensor, "batch height width"]]:
    """How much of each pixel a shape covers, and its colour there."""
    inverse, scale = _inverted(pose[:, :, :2])
    at = (torch.arange(design.size, device=pose.device, dtype=pose.dtype) + 0.5) - design.size / 2
    across = at.view(1, 1, -1) - pose[:, 0, 2].view(-1, 1, 1)
    down = at.view(1, -1, 1) - pose[:, 1, 2].view(-1, 1, 1)
    x = inverse[0] * across + inverse[1] * down
    y = inverse[2] * across + inverse[3] * down
    cover = (0.5 - distance(x, y) * scale).clamp(0, 1)
    return cover, _colour(x, y, looks, design)


def _inverted(matrix: Float[Tensor, "batch 2 2"]) -> tuple[list[Tensor], Tensor]:
    """The entries of inverse matrices, and the mean scale of the matrices."""
    determinant = matrix[:, 0, 0] * matrix[:, 1, 1] - matrix[:, 0, 1] * matrix[:, 1, 0]
    entries = (matrix[:, 1, 1], -matrix[:, 0, 1], -matrix[:, 1, 0], matrix[:, 0, 0])
    return [(entry / determinant).view(-1, 1, 1) for entry in entries], determinant.sqrt().view(-1, 1, 1)


def _colour(x: Tensor, y: Tensor, looks: Tensor, design: Design) -> Tensor:
    shade, turn, phase, width = (look.view(-1, 1, 1) for look in looks.unbind(1))
    plain = _DARK + (_BRIGHT - _DARK) * shade
    if not design.texture:
        return plain.expand_as(x)
    waves = _STRIPES * pi * (0.4 + 0.6 * width)
    along = x * (waves * (pi * turn).cos()) + y * (waves * (pi * turn).sin()) + 2 * pi * phase
    return plain - 0.25 * design.texture * (1 + along.sin())


def _clouds(draws: Float[Tensor, "batch knots"], design: Design) -> Float[Tensor, "batch height width"]:
    """Two octaves of smooth noise."""
    sheets = []
    parts = torch.split(draws, [knots**2 for knots in KNOTS], dim=1)
    for knots, part in zip(KNOTS, parts, strict=True):
        grid = part.view(-1, 1, knots, knots)
        sheets.append(F.interpolate(grid, (design.size, design.size), mode="bilinear", align_corners=True))
    return (0.5 * design.texture * (0.65 * sheets[0] + 0.35 * sheets[1])).squeeze(1).contiguous()
