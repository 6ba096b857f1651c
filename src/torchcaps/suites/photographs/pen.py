"""Test digits as the way of a pen, so that thin and thick pens write them again, at any size."""

from __future__ import annotations

from math import hypot
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, UInt8
from torch import Tensor
from torch.nn import functional

FINE = 4  # places to a pixel, in which the way of the pen is found
_INK = 0.4  # share of full brightness from which on a place is part of a stroke
_AROUND = ((-1, 0), (-1, 1), (0, 1), (1, 1), (1, 0), (1, -1), (0, -1), (-1, -1))  # clockwise from above
_RIDGE = 0.5  # places that a middle lies deeper than its neighbours would have it
_THINNEST = 0.6  # share of the usual width: the middles of less are the corners of an edge


class Written(NamedTuple):
    """A digit as the way of a pen.

    Attributes:
        needed: How wide a pen inks each place, in pixels of the test image; `FINE` places make one of these.
        width: Of the pen that wrote the test image.
    """

    needed: Float[Tensor, "height width"]
    width: float


def trace(images: UInt8[Tensor, "count 1 height width"]) -> list[Written]:
    """The way of the pen in each image of a bright digit on black.

    A stroke keeps its pressure: where it is twice as wide as elsewhere, it is so with every pen.
    """
    levels = functional.interpolate(images.cpu().float() / 255, scale_factor=FINE, mode="bicubic")[:, 0]
    is_ink = levels >= _INK
    return [_written(*pair) for pair in zip(is_ink, _thinned(is_ink), strict=True)]


def _written(is_ink: Bool[Tensor, "height width"], is_line: Bool[Tensor, "height width"]) -> Written:
    if not is_line.any():
        return Written(torch.full(is_ink.shape, torch.inf), 1.0)
    depth = _depth(is_ink)
    usual = depth[is_line].median()
    is_line = is_line | (_is_ridge(depth) & (depth >= _THINNEST * usual))
    every = torch.ones_like(is_ink).nonzero().float()
    ways = torch.cdist(every, is_line.nonzero().float()) * (usual / depth[is_line])
    return Written(2 / FINE * ways.amin(1).view(is_ink.shape), 2 / FINE * float(usual))


def _depth(is_ink: Bool[Tensor, "height width"]) -> Float[Tensor, "height width"]:
    """How far each place of a stroke lies from its edge, which runs between two places."""
    beside = functional.max_pool2d(is_ink.float()[None], 3, 1, 1)[0].bool() & ~is_ink
    depth = torch.zeros(is_ink.shape)
    depth[is_ink] = torch.cdist(is_ink.nonzero().float(), beside.nonzero().float()).amin(1) - 0.5
    return depth


def _is_ridge(depth: Float[Tensor, "height width"]) -> Bool[Tensor, "height width"]:
    """The middles of discs that no larger disc in the stroke covers: short tongues, which thinning loses."""
    framed = functional.pad(depth, (1, 1, 1, 1))
    covering = [framed.roll(step, (0, 1)) - hypot(*step) for step in _AROUND]
    return depth > torch.stack(covering).amax(0)[1:-1, 1:-1] + _RIDGE


def _thinned(is_ink: Bool[Tensor, "count height width"]) -> Bool[Tensor, "count height width"]:
    """The middle lines of strokes, a place wide (Zhang and Suen 1984)."""
    ink = functional.pad(is_ink.byte(), (1, 1, 1, 1))
    while True:
        before = ink
        for corner in (0, 1):
            ink = ink & ~_removable(ink, corner)
        if torch.equal(ink, before):
            return ink[:, 1:-1, 1:-1].bool()


def _removable(ink: UInt8[Tensor, "count height width"], corner: int) -> UInt8[Tensor, "count height width"]:
    """1 where a place at the lower right edge of a stroke may go (`corner` 0), or at the upper left (1)."""
    around = torch.stack([ink.roll((-row, -column), (1, 2)) for row, column in _AROUND])
    above, right, below, left = around[::2]
    outer, inner = ((right & below), (above | left)) if corner == 0 else ((above & left), (right | below))
    count = around.sum(0, dtype=torch.uint8)
    starts = (around < around.roll(-1, 0)).sum(0, dtype=torch.uint8)
    return ((count >= 2) & (count <= 6) & (starts == 1) & (outer & inner == 0)).byte() & ink
