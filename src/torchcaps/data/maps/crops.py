"""Square crops of maps at any place and heading, cut out on the device of the map."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import NamedTuple

import torch
from jaxtyping import Float, Int64, UInt8
from torch import Tensor
from torch.nn import functional as F

from ..lazy_images import Indices, LazyImages

_WINDOW_SHARE = 32  # pixels of a window for each pixel of a crop; reading single bytes costs more than that


class _Window(NamedTuple):
    """The first column and row of a part of a map, and those behind its last."""

    left: int
    top: int
    right: int
    bottom: int

    @property
    def pixels(self) -> int:
        return (self.right - self.left) * (self.bottom - self.top)


@dataclass(frozen=True, eq=False)
class Views:
    """Which crops are cut out: of which map and date, around which pixel, along which heading.

    Attributes:
        maps: Numbers of maps.
        dates: Numbers of dates.
        centres: Column and row of the middle; a whole number is the middle of a pixel.
        headings: Radians, counter-clockwise from east; the top of a crop lies ahead.
    """

    maps: Int64[Tensor, " count"]
    dates: Int64[Tensor, " count"]
    centres: Float[Tensor, "count 2"]
    headings: Float[Tensor, " count"]

    def __len__(self) -> int:
        return len(self.maps)

    def at(self, indices: Tensor) -> Views:
        """Those at `indices`."""
        return Views(*(getattr(self, part.name)[indices] for part in fields(self)))

    def to(self, device: torch.device | str) -> Views:
        """The same on another device."""
        return Views(*(getattr(self, part.name).to(device) for part in fields(self)))


def sample_crops(
    images: UInt8[Tensor, "dates channels height width"],
    dates: Int64[Tensor, " count"],
    centres: Float[Tensor, "count 2"],
    headings: Float[Tensor, " count"],
    side: int,
) -> Float[Tensor, "count channels {side} {side}"]:
    """Crops in [0, 1], interpolated bilinearly; outside the map is black.

    Bytes are read where they are needed. On the processor, the crops of a date that lie close enough together
    are cut out of a window of the map instead, which is several times faster.
    """
    column, row = _points(centres, headings, side)
    if images.device.type != "cpu":
        return _gather(images, dates, column, row)
    crops = torch.empty(len(dates), images.shape[1], side, side)
    for date in torch.unique(dates):
        chosen = dates == date
        part = column[chosen], row[chosen]
        window = _window(images, *part)
        is_worth_it = window.pixels <= _WINDOW_SHARE * part[0].numel()
        crops[chosen] = (
            _cut(images[date], window, *part) if is_worth_it else _gather(images, dates[chosen], *part)
        )
    return crops


def _gather(images: Tensor, dates: Tensor, column: Tensor, row: Tensor) -> Tensor:
    left, top = column.floor(), row.floor()
    total = torch.zeros(*column.shape, images.shape[1], device=images.device)
    for down in (0, 1):
        for across in (0, 1):
            weight = (1 - (column - left - across).abs()) * (1 - (row - top - down).abs())
            total += _read(images, dates, left + across, top + down) * weight.unsqueeze(-1)
    return total.permute(0, 3, 1, 2) / 255


def _points(centres: Tensor, headings: Tensor, side: int) -> tuple[Tensor, Tensor]:
    """Column and row of each pixel of each crop."""
    axis = (side - 1) / 2 - torch.arange(side, device=centres.device, dtype=centres.dtype)
    ahead, left = axis[:, None], axis[None, :]
    cos, sin = (part[:, None, None] for part in (headings.cos(), headings.sin()))
    column = centres[:, 0, None, None] + ahead * cos - left * sin
    row = centres[:, 1, None, None] - ahead * sin - left * cos  # rows grow to the south
    return column, row


def _window(images: Tensor, column: Tensor, row: Tensor) -> _Window:
    """The part of a map that all crops lie in."""
    height, width = images.shape[2:]
    left, right = (int(edge.clamp(0, width - 1)) for edge in (column.min().floor(), column.max().ceil()))
    top, bottom = (int(edge.clamp(0, height - 1)) for edge in (row.min().floor(), row.max().ceil()))
    return _Window(left, top, right + 1, bottom + 1)


def _cut(image: Tensor, window: _Window, column: Tensor, row: Tensor) -> Tensor:
    count, side, _ = column.shape
    part = image[None, :, window.top : window.bottom, window.left : window.right].float() / 255
    height, width = part.shape[2:]
    across = (2 * (column - window.left) + 1) / width - 1
    down = (2 * (row - window.top) + 1) / height - 1
    places = torch.stack([across, down], dim=-1).view(1, count * side, side, 2)
    found = F.grid_sample(part, places, align_corners=False)
    return found.view(-1, count, side, side).transpose(0, 1)


def _read(images: Tensor, dates: Tensor, column: Tensor, row: Tensor) -> Tensor:
    height, width = images.shape[2:]
    is_inside = (column >= 0) & (column < width) & (row >= 0) & (row < height)
    rows, columns = row.clamp(0, height - 1).long(), column.clamp(0, width - 1).long()
    found = images[dates[:, None, None], :, rows, columns]  # (count, side, side, channels)
    return found * is_inside.unsqueeze(-1)


class MapImages(LazyImages):
    """Crops that are cut out when they are asked for, indexed like a tensor of images.

    Args:
        maps: Each as bytes (dates, channels, height, width).
        views: Which crops there are.
        side: Pixels of a crop.
    """

    def __init__(self, maps: Sequence[Tensor], views: Views, side: int) -> None:
        self.maps, self.views, self.side = tuple(maps), views, side

    def __len__(self) -> int:
        return len(self.views)

    @property
    def device(self) -> torch.device:  # type: ignore[override]  # it is that of the maps
        """Where the maps are."""
        return self.maps[0].device

    @property
    def shape(self) -> torch.Size:
        """As of a tensor."""
        return torch.Size((len(self), self.maps[0].shape[1], self.side, self.side))

    def __getitem__(self, indices: Tensor | slice) -> UInt8[Tensor, "chosen channels height width"]:
        numbers = torch.arange(len(self), device=self.device)[indices]
        chosen = self.views.at(numbers)
        crops = torch.zeros((len(numbers), *self.shape[1:]), dtype=torch.uint8, device=self.device)
        for number, pixels in enumerate(self.maps):
            rows = (chosen.maps == number).nonzero()[:, 0]
            if len(rows):
                part = chosen.at(rows)
                crops[rows] = _as_bytes(
                    sample_crops(pixels, part.dates, part.centres, part.headings, self.side)
                )
        return crops

    def to(self, device: torch.device | str) -> MapImages:
        """The same crops on another device."""
        return MapImages([pixels.to(device) for pixels in self.maps], self.views.to(device), self.side)

    def subset(self, indices: Indices) -> MapImages:
        """The crops at `indices`."""
        chosen = torch.as_tensor(indices, device=self.device)
        return MapImages(self.maps, self.views.at(chosen), self.side)


def _as_bytes(crops: Tensor) -> Tensor:
    return (crops * 255).round().to(torch.uint8)
