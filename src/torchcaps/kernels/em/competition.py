"""Parents of several windows that compete for one child, which stands at a place in each of them."""

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
        """A number for the child at each place, flat over the windows and the (type, row, column) in each."""
        rows, columns, side, stride = self.grid
        place = torch.arange(side, device=device)
        y = stride * torch.arange(rows, device=device)[:, None, None, None, None] + place[:, None]
        x = stride * torch.arange(columns, device=device)[:, None, None, None] + place
        types = torch.arange(self.children // side**2, device=device)[:, None, None]
        height, width = (stride * (windows - 1) + side for windows in (rows, columns))
        return ((types * height + y) * width + x).flatten()

    def places(self) -> Tensor:
        """A number for the child at each place, `[windows, children]` of one sample."""
        windows = self.grid.rows * self.grid.columns
        if self._child is None:
            return torch.arange(windows * self.children).view(windows, -1)
        return self._child.view(windows, -1)

    def total(self, values: Tensor) -> Tensor:
        """Sum over all places of a child, at each of them; `[windows, children]`."""
        if self._child is None:
            return values
        flat = values.reshape(-1, self._child.numel())
        child = self._child.expand_as(flat)
        sums = flat.new_zeros(len(flat), self._on_map).scatter_add_(1, child, flat)
        return sums.gather(1, child).view(values.shape)

    def divide(self, log_values: Tensor) -> Tensor:
        """Couplings `[windows, types, children]` from scores, which are overwritten.

        They sum to one over the types of all windows in which a child stands.
        """
        peak = log_values.amax(1)
        values = log_values.sub_(peak.unsqueeze(1)).exp_()
        if self._child is None:
            return values.mul_(values.sum(1).reciprocal_().unsqueeze(1))
        flat = peak.view(-1, self._child.numel())
        child = self._child.expand_as(flat)
        least = flat.new_full((len(flat), self._on_map), torch.finfo(flat.dtype).min)
        highest = least.scatter_reduce_(1, child, flat, "amax").gather(1, child).view(peak.shape)
        scale = peak.sub_(highest).exp_()  # from this window's largest score to that of all
        share = scale / self.total(values.sum(1) * scale)
        return values.mul_(share.unsqueeze(1))

    @property
    def _on_map(self) -> int:
        rows, columns, side, stride = self.grid
        on_plane = (stride * (rows - 1) + side) * (stride * (columns - 1) + side)
        return self.children // side**2 * on_plane
