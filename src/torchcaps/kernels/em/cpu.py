"""Fused EM routing in plain PyTorch operations: the CPU path, exact in float64 too.

A few samples at a time cast their votes into memory that stays in the cache, `[windows, types, pose,
children]` with the children side by side, and all rounds run over it. Each round is two passes of matrix
products (sums over children, then over the pose's components) and one that squares what is left of a vote.
Only means, variances, masses and logits are kept, `O(N O H)`; the backward pass casts the votes and splits
the children again. The gradient of a vote is a sum over rounds of products of a part's and a child's number,

    dL/dvote = vote * (A B) + A' B,   A, A' of `[pose, 2 r - 1]` and B of `[2 r - 1, children]`,

so that it is formed once, and not in every round. Any size that fits in memory is accepted; the votes of one
sample are formed three times over.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from ..tiles import work_side_by_side
from .competition import Competition
from .state import EMGrads, EMGrid, EMInputs, EMScales, EMState

_TILE_ELEMENTS = 1 << 19  # votes cast at a time: 2 MB, at least those of one sample
_LEAST_MASS = 1e-7


class _Fit(NamedTuple):
    """One round's parents, of some windows."""

    mean: Tensor  # (N, O, H)
    variance: Tensor
    mass: Tensor  # (N, O)
    logit: Tensor


class _Layer:
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

    def split(self, squares: Tensor, fit: _Fit) -> Tensor:
        """E-step: couplings by the votes' squared distances from the mean of each parent."""
        distance = _over_pose(fit.variance.reciprocal(), squares)
        constant = F.logsigmoid(fit.logit) - 0.5 * (2 * math.pi * fit.variance).log().sum(-1)
        scores = distance.mul_(-0.5).add_(constant.unsqueeze(-1))
        return self.competition.divide(scores)


def fit(inputs: EMInputs, costs: tuple[Tensor, Tensor], grid: EMGrid, scales: EMScales) -> EMState:
    """All rounds, given the activation and vote costs; the last means and logits are the result."""
    layer, rounds = _Layer(inputs, grid), scales.iterations
    parents = (rounds, layer.windows, layer.types)
    new = inputs.poses.new_empty
    state = EMState(
        means=new(*parents, layer.pose),
        variances=new(*parents, layer.pose),
        masses=new(parents),
        logits=new(parents),
        scores=new(0, layer.windows, layer.children, layer.types),
        shifts=new(0, layer.windows, layer.children),
    )

    def fit_parts(parts: Sequence[slice]) -> None:
        buffers = layer.buffers(2)
        for part in parts:
            memory, squares = (memory[: part.stop - part.start] for memory in buffers)
            votes, coupling = layer.cast(part, memory), layer.even_split(part)
            for step in range(rounds):
                weights = coupling * inputs.activations[part].unsqueeze(1)
                fitted = _m_step(votes, weights, costs, scales, step, squares)
                for kept, value in zip(state, fitted, strict=False):
                    kept[step, part] = value
                if step < rounds - 1:
                    coupling = layer.split(squares, fitted)

    work_side_by_side(fit_parts, layer.parts())
    return state


def _m_step(
    votes: Tensor,
    weights: Tensor,
    costs: tuple[Tensor, Tensor],
    scales: EMScales,
    step: int,
    squares: Tensor,
) -> _Fit:
    """Parents fitted to `weights`; `squares` are the votes' squared distances from their means after it."""
    mass = weights.sum(-1) + _LEAST_MASS
    share = weights / mass.unsqueeze(-1)
    mean = _over_children(share, votes)
    # around the mean, not E[v²]-E[v]²: that difference cancels for votes far from zero
    variance = _over_children(share, _square_distances(votes, mean, squares)) + scales.min_variance
    cost = (votes.shape[2] * costs[1] + 0.5 * variance.log().sum(-1)) * mass / scales.even_mass
    return _Fit(mean, variance, mass, scales.temperature(step) * (costs[0] - cost))


def fit_backward(
    grads: tuple[Tensor, Tensor],
    inputs: EMInputs,
    vote_cost: Tensor,
    state: EMState,
    grid: EMGrid,
    scales: EMScales,
) -> EMGrads:
    """Gradients, from those of the last means and logits."""
    layer = _Layer(inputs, grid)
    of_children = torch.empty_like(inputs.poses), torch.zeros_like(inputs.activations)

    def differentiate(parts: Sequence[slice]) -> EMGrads:
        learned = (torch.zeros_like(x) for x in (inputs.matrices, vote_cost, vote_cost))
        result, buffers = EMGrads(*of_children, *learned), layer.buffers(3)
        for part in parts:
            fits = [_Fit(*(kept[step, part] for kept in state[:4])) for step in range(scales.iterations)]
            walk = _Backward(layer, part, fits, vote_cost, scales, buffers)
            walk.run((grads[0][part], grads[1][part]), result)
        return result

    shares = work_side_by_side(differentiate, layer.parts())
    sums = (torch.stack(values).sum(0) for values in zip(*(share[2:] for share in shares), strict=True))
    return EMGrads(*of_children, *sums)


class _Backward:
    """The backward pass of some windows."""

    def __init__(
        self,
        layer: _Layer,
        part: slice,
        fits: list[_Fit],
        vote_cost: Tensor,
        scales: EMScales,
        buffers: list[Tensor],
    ) -> None:
        self.layer, self.part, self.fits, self.scales = layer, part, fits, scales
        self.vote_cost = vote_cost
        self.votes, self.away, self.squares = (memory[: part.stop - part.start] for memory in buffers)
        layer.cast(part, self.votes)
        self.couplings = self._couplings()
        self.centre = fits[-1].mean  # what is added to a product of votes must not dwarf their spread
        self.votes -= self.centre.unsqueeze(-1)
        self.factors: list[tuple[Tensor, Tensor, Tensor]] = []  # columns of A and A', row of B

    def _couplings(self) -> list[Tensor]:
        found = [self.layer.even_split(self.part)]
        for fitted in self.fits[:-1]:
            squares = _square_distances(self.votes, fitted.mean, self.squares)
            found.append(self.layer.split(squares, fitted))
        return found

    def run(self, grads: tuple[Tensor, Tensor], result: EMGrads) -> None:
        """Adds the gradients of these windows to `result`."""
        active = self.layer.inputs.activations[self.part].unsqueeze(1)
        grad_score: Tensor | None = None
        for step in reversed(range(len(self.fits))):
            coupling = self.couplings[step]
            weights = coupling * active
            grad_share = self._round(step, weights, grads, grad_score, result)
            mean = (coupling * grad_share).sum(1)
            result.activations[self.part] += mean
            if step > 0:
                competing = self.layer.competition.total(mean).unsqueeze(1)
                grad_score = grad_share.sub_(competing).mul_(weights)
        self._through_votes(result)

    def _round(
        self,
        step: int,
        weights: Tensor,
        grads: tuple[Tensor, Tensor],
        grad_score: Tensor | None,
        result: EMGrads,
    ) -> Tensor:
        """One round's `dL/dweights`, from `dL/dscore` of the next or, in the last, from `grads`."""
        fitted, away = self.fits[step], self.votes
        shift = (fitted.mean - self.centre).unsqueeze(-1)
        precision = fitted.variance.reciprocal()
        if grad_score is not None:
            away = torch.sub(self.votes, shift, out=self.away)
        squares = torch.mul(away, away, out=self.squares)
        if grad_score is None:
            grad_mean, grad_logit = grads
            grad_variance = torch.zeros_like(grad_mean)
        else:
            total = grad_score.sum(-1)
            grad_mean = _over_children(grad_score, away) * precision
            pull = _over_children(grad_score, squares) * precision
            grad_variance = 0.5 * (pull - total.unsqueeze(-1)) * precision
            grad_logit = total * torch.sigmoid(-fitted.logit)
            self.factors.append((-precision, precision * shift.squeeze(-1), grad_score))
        tempered = self.scales.temperature(step) * grad_logit
        grad_cost = -tempered / self.scales.even_mass
        result.activation_cost.add_(tempered.sum(0))
        result.vote_cost.add_((grad_cost * fitted.mass).sum(0), alpha=self.layer.pose)
        mass = fitted.mass.unsqueeze(-1)
        grad_variance = grad_variance + 0.5 * grad_cost.unsqueeze(-1) * mass * precision
        # shares sum to a little less than one
        grad_mean = grad_mean - 2 * grad_variance * fitted.mean * (_LEAST_MASS / mass)
        slope, curve = grad_mean / mass, grad_variance / mass
        self.factors.append((2 * curve, slope - 2 * curve * shift.squeeze(-1), weights))
        per_mass = self.layer.pose * self.vote_cost + 0.5 * fitted.variance.log().sum(-1)
        spread = fitted.variance - self.scales.min_variance
        grad_mass = grad_cost * per_mass - (curve * spread).sum(-1)
        pulled = _over_pose(curve, squares).add_(_over_pose(slope, away))
        return pulled.add_(grad_mass.unsqueeze(-1))

    def _through_votes(self, result: EMGrads) -> None:
        """Gradients of poses and matrices, by way of that of the votes."""
        layer, part = self.layer, self.part
        slopes, offsets, rows = zip(*self.factors, strict=True)
        rows = torch.stack(rows, 2).flatten(0, 1)
        grad_votes, factor = self.squares.flatten(0, 1), self.away.flatten(0, 1)
        torch.bmm(torch.stack(slopes, 3).flatten(0, 1), rows, out=factor)
        torch.bmm(torch.stack(offsets, 3).flatten(0, 1), rows, out=grad_votes)
        grad_votes.addcmul_(factor, self.votes.flatten(0, 1))
        sides = (part.stop - part.start, layer.types, layer.rows, layer.columns, layer.children)
        by_child = self.votes.flatten().view(sides[4], sides[0], sides[2], sides[1], sides[3])
        by_child.copy_(grad_votes.view(sides).permute(4, 0, 2, 1, 3))
        flat = by_child.view(layer.children, -1, layer.types * layer.columns)
        poses = layer.inputs.poses[part].unflatten(2, (layer.rows, layer.in_columns)).transpose(0, 1)
        matrices = layer.inputs.matrices.flatten(2)
        grad_poses = torch.bmm(flat, matrices.mT).view(layer.children, sides[0], -1)
        result.poses[part] = grad_poses.transpose(0, 1)
        result.matrices.flatten(2).baddbmm_(poses.flatten(1, 2).mT, flat)


def _square_distances(votes: Tensor, mean: Tensor, out: Tensor) -> Tensor:
    """`(vote - mean)²`, in one pass over the votes."""
    return torch.ops.aten.mse_loss.out(votes, mean.unsqueeze(-1), 0, out=out)


def _over_children(weights: Tensor, values: Tensor) -> Tensor:
    """`sum_i weights[n, o, i] values[n, o, h, i]`."""
    return torch.matmul(weights.unsqueeze(2), values.mT).squeeze(2)


def _over_pose(weights: Tensor, values: Tensor) -> Tensor:
    """`sum_h weights[n, o, h] values[n, o, h, i]`."""
    return torch.matmul(weights.unsqueeze(2), values).squeeze(2)
