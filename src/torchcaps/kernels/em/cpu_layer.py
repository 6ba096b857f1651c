"""Votes of EM capsules with the children side by side in memory, and sums over them."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from .competition import Competition
from .state import EMGrid, EMInputs

_TILE_ELEMENTS = 1 << 19  # votes cast at a time: 2 MB, at least those of one sample
LEAST_MASS = 1e-7


class Fit(NamedTuple):
    """One round's parents, of some windows."""

    mean: Tensor  # (N, O, H)
    variance: Tensor
    mass: Tensor  # (N, O)
    logit: Tensor


class Layer:
    """One call's inputs, laid out for votes with the children innermost."""

    def __init__(self, inputs: EMInputs, grid: EMGrid) -> None:
        self.inputs, self.grid = inputs, grid
        poses, _, matrices, offsets = inputs
        self.windows, self.children, in_pose = poses.shape
        _, self.in_columns, self.types, self.columns = matrices.shape
        self.rows = in_pose // self.in_columns
        self.pose = self.rows * self.columns
        self.competition = Competition(grid, self.children, poses.device)
        ones = poses.new_ones(grid.rows * grid.columns, self.children)
        self.even = (self.types * self.competition.total(ones)).reciprocal()  # of one sample
        self.matrices = matrices.permute(1, 2, 3, 0).contiguous()[:, None, :, None]
        self.offsets = None if offsets is None else offsets.T.contiguous().view(self.rows, self.columns, -1)
        self.at_once = self._windows_at_once()

    def _windows_at_once(self) -> int:
        of_sample = self.grid.rows * self.grid.columns
        numbers = of_sample * self.types * self.pose * self.children
        return min(self.windows, of_sample * max(1, _TILE_ELEMENTS // numbers))

    def parts(self) -> list[slice]:
        """Windows of whole samples."""
        starts = range(0, self.windows, self.at_once)
        return [slice(start, min(start + self.at_once, self.windows)) for start in starts]

    def buffers(self, count: int) -> list[Tensor]:
        """Memory for numbers of each vote of a part, `[windows, types, pose, children]`.

        Fresh memory for each part would cost more than the arithmetic.
        """
        shape = (self.at_once, self.types, self.pose, self.children)
        return [self.inputs.poses.new_empty(shape) for _ in range(count)]

    def cast(self, part: slice, out: Tensor) -> Tensor:
        """The votes of these windows."""
        poses = self.inputs.poses[part].unflatten(2, (self.rows, self.in_columns))
        by_column = poses.permute(3, 0, 2, 1).contiguous()[:, :, None, :, None]
        votes = out.view(-1, self.types, self.rows, self.columns, self.children)
        torch.mul(by_column[0], self.matrices[0], out=votes)
        for number in range(1, self.in_columns):
            votes.addcmul_(by_column[number], self.matrices[number])
        if self.offsets is not None:
            votes += self.offsets
        return out

    def even_split(self, part: slice) -> Tensor:
        """Couplings of the first round, `[windows, types, children]`."""
        samples = (part.stop - part.start) // self.even.shape[0]
        return self.even.repeat(samples, 1).unsqueeze(1).expand(-1, self.types, -1)

    def split(self, squares: Tensor, fit: Fit) -> Tensor:
        """E-step: couplings by the votes' squared distances from the mean of each parent."""
        distance = over_pose(fit.variance.reciprocal(), squares)
        constant = F.logsigmoid(fit.logit) - 0.5 * (2 * math.pi * fit.variance).log().sum(-1)
        scores = distance.mul_(-0.5).add_(constant.unsqueeze(-1))
        return self.competition.divide(scores)


def square_distances(votes: Tensor, mean: Tensor, out: Tensor) -> Tensor:
    """`(vote - mean)²`, in one pass over the votes."""
    return torch.ops.aten.mse_loss.out(votes, mean.unsqueeze(-1), 0, out=out)


def over_children(weights: Tensor, values: Tensor) -> Tensor:
    """`sum_i weights[n, o, i] values[n, o, h, i]`."""
    return torch.matmul(weights.unsqueeze(2), values.mT).squeeze(2)


def over_pose(weights: Tensor, values: Tensor) -> Tensor:
    """`sum_h weights[n, o, h] values[n, o, h, i]`."""
    return torch.matmul(weights.unsqueeze(2), values).squeeze(2)
