"""Triangles on a grid of pixels, as spans: the pixels of one row that one triangle covers.

A pixel belongs to a triangle when its middle lies inside. Both triangles of an edge compute where a row
meets it by the same operations on the same numbers, so that they share no pixel and leave none out.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Float, Int64
from torch import Tensor


class Spans(NamedTuple):
    """Pixels `start` to `end` - 1 of row `row`, covered by triangle `owner`."""

    owner: Int64[Tensor, " spans"]
    row: Int64[Tensor, " spans"]
    start: Int64[Tensor, " spans"]
    end: Int64[Tensor, " spans"]


def spans_of(corners: Float[Tensor, "triangles 3 2"], height: int, width: int) -> Spans:
    """The spans of triangles with corners (column, row) in pixels, cut at the border of the image."""
    order = corners[..., 1].argsort(dim=1)
    ordered = corners.gather(1, order.unsqueeze(-1).expand_as(corners))
    x, y = ordered.unbind(-1)
    first = _first_middle(y[:, 0], height)
    owner, row = expand(first, _first_middle(y[:, 2], height))
    middle = row.to(y.dtype) + 0.5
    xs, ys = x[owner], y[owner]
    is_below = middle >= ys[:, 1]
    long = _meet(xs[:, 0], ys[:, 0], xs[:, 2], ys[:, 2], middle)
    short = _meet(
        torch.where(is_below, xs[:, 1], xs[:, 0]),
        torch.where(is_below, ys[:, 1], ys[:, 0]),
        torch.where(is_below, xs[:, 2], xs[:, 1]),
        torch.where(is_below, ys[:, 2], ys[:, 1]),
        middle,
    )
    start = _first_middle(torch.minimum(long, short), width)
    end = _first_middle(torch.maximum(long, short), width)
    return Spans(owner, row, start, end)


def _meet(x0: Tensor, y0: Tensor, x1: Tensor, y1: Tensor, y: Tensor) -> Tensor:
    """Where a row meets the line from an upper to a lower point, which is not level."""
    return x0 + (y - y0) * ((x1 - x0) / (y1 - y0).clamp(min=1e-12))


def _first_middle(place: Tensor, size: int) -> Tensor:
    """The first pixel whose middle is not before `place`."""
    return (place - 0.5).ceil().clamp(0, size).long()


def expand(start: Int64[Tensor, " n"], end: Int64[Tensor, " n"]) -> tuple[Tensor, Tensor]:
    """All whole numbers from each start to before its end, and whose they are."""
    counts = (end - start).clamp(min=0)
    owner = torch.repeat_interleave(torch.arange(len(start), device=start.device), counts)
    offset = start - (counts.cumsum(0) - counts)
    return owner, torch.arange(len(owner), device=start.device) + offset[owner]
