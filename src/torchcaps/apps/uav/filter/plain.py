"""The filter in plain PyTorch, one operation for each step of the mathematics: the reference."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from .backend import Evidence, Match, Moments
from .motion import Prediction, Taps


class PlainBackend:
    """A belief as one tensor on any device, in float32 or float64."""

    def __init__(self, dtype: torch.dtype = torch.float32, device: torch.device | str = "cpu") -> None:
        self._dtype, self._device = dtype, torch.device(device)
        self._belief = torch.empty(0)

    def fill(self, belief: NDArray[np.floating]) -> None:
        """Take over a belief of (heading, row, column)."""
        self._belief = torch.tensor(belief, dtype=self._dtype, device=self._device)

    def read(self) -> NDArray[np.floating]:
        """A copy of the belief."""
        return self._belief.cpu().numpy().copy()

    def update(self, prediction: Prediction, evidence: Evidence, scale: float) -> Moments:
        """Move the belief times `scale` along a prediction, weigh it by the evidence, sum it up."""
        moved = [
            _shift(_shift(plane, prediction.x, heading, 1), prediction.y, heading, 0)
            for heading, plane in enumerate(self._belief * scale)
        ]
        belief = _turn(torch.stack(moved), prediction.heading)
        belief *= torch.as_tensor(evidence.headings, dtype=self._dtype, device=self._device)[:, None, None]
        if evidence.match is not None:
            belief *= self._weights(evidence.match)
            if (known := evidence.match.descriptors.known) is not None:
                belief *= torch.as_tensor(known, dtype=self._dtype, device=self._device)
        self._belief = belief
        return sum_up(belief)

    def _weights(self, match: Match) -> Tensor:
        tables = torch.as_tensor(match.tables, dtype=self._dtype, device=self._device)
        stored = torch.from_numpy(np.array(match.descriptors.values)).to(self._device)  # maps are read-only
        if match.descriptors.book.storage == "product":
            parts = [table[stored[:, :, group].long()] for group, table in enumerate(tables)]
            dots = torch.stack(parts).sum(0)
        else:
            dots = torch.einsum("ljdi,d->lji", stored.to(self._dtype), tables)
        return look_up(torch.as_tensor(match.weights, dtype=self._dtype, device=self._device), dots)


def look_up(weights: Tensor, dots: Tensor) -> Tensor:
    """The weight of each distance sqrt(2 - 2 dot), interpolated linearly between its neighbours."""
    last = len(weights) - 1
    place = (2 - 2 * dots).clamp(0, 4).sqrt() * (last / 2)
    low = place.floor().clamp(max=last - 1)
    index = low.long().clamp(0, last - 1)  # also where a damaged map holds no number
    return weights[index].lerp(weights[index + 1], place - low)


def sum_up(belief: Tensor) -> Moments:
    """The sums of a belief, in float64."""
    wide = belief.double()
    columns = torch.arange(belief.shape[2], dtype=torch.float64, device=belief.device)
    rows = torch.arange(belief.shape[1], dtype=torch.float64, device=belief.device)
    by_column, by_row = wide.sum(1), wide.sum(2)
    return Moments(
        mass=by_row.sum(1).cpu().numpy(),
        x=(by_column @ columns).cpu().numpy(),
        y=(by_row @ rows).cpu().numpy(),
        square=(by_column @ columns**2 + by_row @ rows**2).cpu().numpy(),
        peak=float(belief.max()),
    )


def _shift(plane: Tensor, taps: Taps, heading: int, axis: int) -> Tensor:
    """A plane convolved along an axis; what leaves it is lost."""
    result = torch.zeros_like(plane)
    size = plane.shape[axis]
    for offset, weight in enumerate(taps.weights[heading], start=int(taps.first[heading])):
        length = size - abs(offset)
        if length > 0:
            target = result.narrow(axis, max(offset, 0), length)
            target += plane.narrow(axis, max(-offset, 0), length) * weight
    return result


def _turn(belief: Tensor, taps: Taps) -> Tensor:
    """A belief convolved along its headings, around the circle."""
    result = torch.zeros_like(belief)
    for offset, weight in enumerate(taps.weights[0], start=int(taps.first[0])):
        result += belief.roll(offset, 0) * weight
    return result
