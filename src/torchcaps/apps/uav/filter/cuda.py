"""The filter on a CUDA device: two kernels an update, and one small copy back to the processor."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from torchcaps.kernels.point_mass.passes import move_kernel, weigh_kernel

from .backend import Evidence, Match, Moments
from .descriptors import Descriptors
from .motion import Prediction, sources_of

_BLOCK = 256


class CudaBackend:
    """A belief in float32 on a device; the descriptors of a map are copied there at their first use."""

    def __init__(self, device: torch.device | str = "cuda") -> None:
        self._device = torch.device(device)
        self._belief = self._moved = self._sums = torch.empty(0)
        self._filled: NDArray[np.bool_] = np.empty(0, np.bool_)
        self._map: tuple[Descriptors, Tensor] | None = None

    def fill(self, belief: NDArray[np.floating]) -> None:
        """Take over a belief of (heading, row, column)."""
        self._belief = torch.tensor(belief, dtype=torch.float32, device=self._device)
        self._moved = torch.zeros_like(self._belief)
        headings, rows, columns = belief.shape
        blocks = -(-columns // _BLOCK)
        self._sums = torch.zeros(headings, rows, blocks, 4, dtype=torch.float64, device=self._device)
        self._filled = np.asarray(belief.any(axis=(1, 2)))

    def read(self) -> NDArray[np.floating]:
        """A copy of the belief."""
        return self._belief.cpu().numpy().copy()

    def update(self, prediction: Prediction, evidence: Evidence, scale: float) -> Moments:
        """Move the belief times `scale` along a prediction, weigh it by the evidence, sum it up."""
        kept = evidence.headings > 0
        moved = sources_of(kept, prediction.heading) & self._filled
        self._move(prediction, moved, scale)
        for heading in np.flatnonzero(self._filled & ~kept):
            self._belief[heading] = 0
            self._sums[heading] = 0
        self._weigh(prediction, evidence, moved, kept)
        moments = self._sum_up()
        self._filled = moments.mass > 0
        return moments

    def _move(self, prediction: Prediction, moved: NDArray[np.bool_], scale: float) -> None:
        _, rows, columns = self._belief.shape
        sources = self._put(np.flatnonzero(moved), torch.int32)
        if not len(sources):
            return
        x, y = prediction.x, prediction.y
        move_kernel[(-(-columns // _BLOCK), rows, len(sources))](
            self._belief,
            self._moved,
            sources,
            self._put(x.first, torch.int32),
            self._put(x.weights),
            self._put(y.first, torch.int32),
            self._put(y.weights),
            rows,
            columns,
            scale,
            X=x.weights.shape[1],
            Y=y.weights.shape[1],
            BLOCK=_BLOCK,
        )

    def _weigh(
        self, prediction: Prediction, evidence: Evidence, moved: NDArray[np.bool_], kept: NDArray[np.bool_]
    ) -> None:
        headings, rows, columns = self._belief.shape
        stored, tables, likelihood, codes = self._matching(evidence.match)
        turn = prediction.heading
        weigh_kernel[(-(-columns // _BLOCK), rows, int(kept.sum()))](
            self._moved,
            self._belief,
            self._put(np.flatnonzero(kept), torch.int32),
            self._put(moved, torch.int32),
            self._put(turn.weights[0]),
            self._put(evidence.headings),
            stored,
            tables,
            likelihood,
            self._sums,
            int(turn.first[0]) % headings,
            headings,
            rows,
            columns,
            PARTS=0 if evidence.match is None else stored.shape[2],
            CODES=codes,
            LAST=len(likelihood) - 1,
            T=turn.weights.shape[1],
            BLOCK=_BLOCK,
        )

    def _matching(self, match: Match | None) -> tuple[Tensor, Tensor, Tensor, int]:
        if match is None:
            nothing = torch.zeros(2, device=self._device)
            return nothing, nothing, nothing, 0
        if self._map is None or self._map[0] is not match.descriptors:
            values = torch.from_numpy(np.ascontiguousarray(match.descriptors.values))
            self._map = match.descriptors, values.to(self._device)
        codes = match.tables.shape[1] if match.tables.ndim == 2 else 0
        return self._map[1], self._put(match.tables), self._put(match.weights), codes

    def _sum_up(self) -> Moments:
        rows = torch.arange(self._sums.shape[1], dtype=torch.float64, device=self._device)
        mass, along, square, _ = self._sums.sum(2).unbind(-1)  # (heading, row)
        parts = [
            mass.sum(1),
            along.sum(1),
            mass @ rows,
            square.sum(1) + mass @ rows**2,
            self._sums[..., 3].amax((1, 2)),
        ]
        mass_, x, y, squares, peaks = torch.stack(parts).cpu().numpy()
        return Moments(mass_, x, y, squares, peak=float(peaks.max()))

    def _put(self, values: NDArray[np.generic], dtype: torch.dtype = torch.float32) -> Tensor:
        return torch.as_tensor(values, dtype=dtype).to(self._device)
