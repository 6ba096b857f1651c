"""Parents of several windows that compete for one child: sums over all places where a child stands."""

from __future__ import annotations

import torch
from torch import Tensor

from .state import EMGrid


class Competition:
    """The places of one sample's windows, and which of them are the same child."""

    def __init__(self, grid: EMGrid, children: int, device: torch.device) -> None:
        self.grid, self.children = grid, children
        is_alone = grid.stride >= grid.side or grid.rows * grid.columns == 1
        self._child = None if is_alone else self._child_of_place(device)

    def _child_of_place(self, device: torch.device) -> Tensor:
        """A number for the child at each place, flat over (row, column, type, row in window, column in it)."""
        rows, columns, side, stride = self.grid
        place = torch.arange(side, device=device)
        y = stride * torch.arange(rows, device=device)[:, None, None, None, None] + place[:, None]
        x = stride * torch.arange(columns, device=device)[:, None, None, None] + place
        types = torch.arange(self.children // side**2, device=device)[:, None, None]
        height, width = (stride * (windows - 1) + side for windows in (rows, columns))
        return ((types * height + y) * width + x).flatten()

    def total(self, values: Tensor) -> Tensor:
        """Sum over all places of a child, at each of them; `[windows, children]`."""
        if self._child is None:
            return values
        flat = values.reshape(-1, self._child.numel())
        child = self._child.expand_as(flat)
        sums = flat.new_zeros(len(flat), self._on_map).scatter_add_(1, child, flat)
        return sums.gather(1, child).view(values.shape)

    def log_total(self, log_values: Tensor) -> Tensor:
        """Log of the sum of exponentials over all places of a child, at each of them."""
        if self._child is None:
            return log_values
        flat = log_values.reshape(-1, self._child.numel())
        child = self._child.expand_as(flat)
        least = flat.new_full((len(flat), self._on_map), torch.finfo(flat.dtype).min)
        peak = least.scatter_reduce_(1, child, flat, "amax").gather(1, child).view(log_values.shape)
        return peak + self.total((log_values - peak).exp()).log()

    @property
    def _on_map(self) -> int:
        rows, columns, side, stride = self.grid
        on_plane = (stride * (rows - 1) + side) * (stride * (columns - 1) + side)
        return self.children // side**2 * on_plane
