"""The filter on a CUDA device: two kernels an update, two small copies there and one back."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from torchcaps.kernels.point_mass.passes import move_kernel, weigh_kernel

from .backend import Evidence, Match, Moments
from .descriptors import Descriptors
from .motion import Prediction, sources_of

_BLOCK = 256
Arrays = Mapping[str, NDArray[np.generic]]


class CudaBackend:
    """A belief in float32 on a device; the descriptors of a map are copied there at their first use.

    A heading that an update leaves out is not cleared: `_filled` says which headings hold a belief, and
    what the others hold is never read.
    """

    def __init__(self, device: torch.device | str = "cuda") -> None:
        self._device = torch.device(device)
        self._belief = self._moved = self._sums = self._powers = torch.empty(0)
        self._filled: NDArray[np.bool_] = np.empty(0, np.bool_)
        self._map: tuple[Descriptors, Tensor, Tensor] | None = None
        self._likelihood: tuple[NDArray[np.float32], Tensor] | None = None

    def fill(self, belief: NDArray[np.floating]) -> None:
        """Take over a belief of (heading, row, column)."""
        self._belief = torch.tensor(belief, dtype=torch.float32, device=self._device)
        self._moved = torch.zeros_like(self._belief)
        headings, rows, columns = belief.shape
        blocks = -(-columns // _BLOCK)
        self._sums = torch.zeros(headings, rows, blocks, 4, dtype=torch.float64, device=self._device)
        row = torch.arange(rows, dtype=torch.float64, device=self._device)
        self._powers = torch.stack([torch.ones_like(row), row, row**2], dim=1)
        self._filled = np.asarray(belief.any(axis=(1, 2)))

    def read(self) -> NDArray[np.floating]:
        """A copy of the belief."""
        return self._belief.cpu().numpy() * self._filled[:, None, None]

    def update(self, prediction: Prediction, evidence: Evidence, scale: float) -> Moments:
        """Move the belief times `scale` along a prediction, weigh it by the evidence, sum it up."""
        kept = evidence.headings > 0
        if not kept.any():  # a compass that contradicts the whole belief
            return self._nothing()
        moved = sources_of(kept, prediction.heading) & self._filled
        values = self._put(_numbers(prediction, evidence), torch.float32)
        values |= self._put(_places(prediction, moved, kept), torch.int32)
        if moved.any():
            self._move(values, scale)
        self._weigh(values, int(prediction.heading.first[0]), evidence.match)
        moments = self._sum_up(np.flatnonzero(kept))
        self._filled = moments.mass > 0
        return moments

    def _nothing(self) -> Moments:
        self._filled = np.zeros_like(self._filled)
        none = np.zeros(len(self._filled))
        return Moments(none, none, none, none, peak=0.0)

    def _move(self, values: Mapping[str, Tensor], scale: float) -> None:
        _, rows, columns = self._belief.shape
        move_kernel[(-(-columns // _BLOCK), rows, len(values["sources"]))](
            self._belief,
            self._moved,
            values["sources"],
            values["x first"],
            values["x"],
            values["y first"],
            values["y"],
            rows,
            columns,
            scale,
            X=values["x"].shape[1],
            Y=values["y"].shape[1],
            BLOCK=_BLOCK,
        )

    def _weigh(self, values: Mapping[str, Tensor], first: int, match: Match | None) -> None:
        headings, rows, columns = self._belief.shape
        stored, known, likelihood, codes = self._matching(match)
        weigh_kernel[(-(-columns // _BLOCK), rows, len(values["kept"]))](
            self._moved,
            self._belief,
            values["kept"],
            values["moved"],
            values["turn"],
            values["headings"],
            stored,
            values.get("tables", stored),
            likelihood,
            known,
            self._sums,
            first % headings,
            headings,
            rows,
            columns,
            PARTS=0 if match is None else stored.shape[2],
            CODES=codes,
            MASKED=match is not None and match.descriptors.known is not None,
            LAST=len(likelihood) - 1,
            T=len(values["turn"]),
            BLOCK=_BLOCK,
        )

    def _matching(self, match: Match | None) -> tuple[Tensor, Tensor, Tensor, int]:
        """The map, its known cells and the likelihood, which are copied once, and the entries of a table."""
        if match is None:
            return self._sums, self._sums, self._sums[0, 0, 0], 0  # none is read
        if self._map is None or self._map[0] is not match.descriptors:
            values = torch.from_numpy(np.ascontiguousarray(match.descriptors.values)).to(self._device)
            known = match.descriptors.known
            mask = values if known is None else torch.tensor(known, dtype=torch.uint8, device=self._device)
            self._map = match.descriptors, values, mask
        if self._likelihood is None or self._likelihood[0] is not match.weights:
            self._likelihood = match.weights, torch.as_tensor(match.weights).to(self._device)
        codes = match.tables.shape[1] if match.tables.ndim == 2 else 0
        return self._map[1], self._map[2], self._likelihood[1], codes

    def _sum_up(self, kept: NDArray[np.int64]) -> Moments:
        """The moments of the headings that were weighed; the others hold nothing."""
        sums = self._sums[: len(kept)]
        parts = torch.einsum("hrk,rp->hkp", sums.sum(2), self._powers).flatten(1)
        peaks = sums[..., 3].amax((1, 2)).unsqueeze(1)
        found = torch.cat([parts, peaks], dim=1).cpu().numpy()
        every = np.zeros((len(self._filled), found.shape[1]))
        every[kept] = found
        mass, y, y_square, x, _, _, x_square = every.T[:7]
        return Moments(mass, x, y, x_square + y_square, peak=float(every[:, -1].max()))

    def _put(self, arrays: Arrays, dtype: torch.dtype) -> dict[str, Tensor]:
        """Arrays on the device by one copy."""
        flat = [torch.as_tensor(array, dtype=dtype).flatten() for array in arrays.values()]
        packed = torch.cat(flat).to(self._device)
        parts = torch.split(packed, [len(part) for part in flat])
        return {
            name: part.view(array.shape) for (name, array), part in zip(arrays.items(), parts, strict=True)
        }


def _numbers(prediction: Prediction, evidence: Evidence) -> Arrays:
    values: dict[str, NDArray[np.generic]] = {
        "x": prediction.x.weights,
        "y": prediction.y.weights,
        "turn": prediction.heading.weights[0],
        "headings": evidence.headings,
    }
    return values if evidence.match is None else {**values, "tables": evidence.match.tables}


def _places(prediction: Prediction, moved: NDArray[np.bool_], kept: NDArray[np.bool_]) -> Arrays:
    return {
        "sources": np.flatnonzero(moved),
        "moved": moved,
        "kept": np.flatnonzero(kept),
        "x first": prediction.x.first,
        "y first": prediction.y.first,
    }
