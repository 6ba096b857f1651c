"""The backward pass of EM routing on a CPU; `cpu.py` has its formula for the gradient of a vote."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from ..tiles import work_side_by_side
from .cpu_layer import LEAST_MASS, Fit, Layer, over_children, over_pose, square_distances
from .state import EMGrads, EMGrid, EMInputs, EMScales, EMState


def fit_backward(
    grads: tuple[Tensor, Tensor],
    inputs: EMInputs,
    vote_cost: Tensor,
    state: EMState,
    grid: EMGrid,
    scales: EMScales,
) -> EMGrads:
    """Gradients, from those of the last means and logits."""
    layer = Layer(inputs, grid)
    of_children = torch.empty_like(inputs.poses), torch.zeros_like(inputs.activations)

    def differentiate(parts: Sequence[slice]) -> EMGrads:
        learned = (torch.zeros_like(x) for x in (inputs.matrices, vote_cost, vote_cost))
        result, buffers = EMGrads(*of_children, *learned), layer.buffers(3)
        for part in parts:
            fits = [Fit(*(kept[step, part] for kept in state[:4])) for step in range(scales.iterations)]
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
        layer: Layer,
        part: slice,
        fits: list[Fit],
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
            squares = square_distances(self.votes, fitted.mean, self.squares)
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
        fitted = self.fits[step]
        shift = fitted.mean - self.centre
        precision = fitted.variance.reciprocal()
        away = self.votes if grad_score is None else torch.sub(self.votes, shift.unsqueeze(-1), out=self.away)
        squares = torch.mul(away, away, out=self.squares)
        grad_mean, grad_logit = grads
        grad_variance = torch.zeros_like(grad_mean)
        if grad_score is not None:
            grad_mean, grad_variance, grad_logit = _through_scores(grad_score, fitted, away, squares)
            self.factors.append((-precision, precision * shift, grad_score))
        tempered = self.scales.temperature(step) * grad_logit
        grad_cost = -tempered / self.scales.even_mass
        result.activation_cost.add_(tempered.sum(0))
        result.vote_cost.add_((grad_cost * fitted.mass).sum(0), alpha=self.layer.pose)
        mass = fitted.mass.unsqueeze(-1)
        grad_variance = grad_variance + 0.5 * grad_cost.unsqueeze(-1) * mass * precision
        # shares sum to a little less than one
        grad_mean = grad_mean - 2 * grad_variance * fitted.mean * (LEAST_MASS / mass)
        slope, curve = grad_mean / mass, grad_variance / mass
        self.factors.append((2 * curve, slope - 2 * curve * shift, weights))
        per_mass = self.layer.pose * self.vote_cost + 0.5 * fitted.variance.log().sum(-1)
        spread = fitted.variance - self.scales.min_variance
        grad_mass = grad_cost * per_mass - (curve * spread).sum(-1)
        pulled = over_pose(curve, squares).add_(over_pose(slope, away))
        return pulled.add_(grad_mass.unsqueeze(-1))

    def _through_votes(self, result: EMGrads) -> None:
        """Gradients of poses and matrices, by way of that of the votes."""
        layer, part = self.layer, self.part
        slopes, offsets, of_children = zip(*self.factors, strict=True)
        rows = torch.stack(of_children, 2).flatten(0, 1)
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


def _through_scores(
    grad_score: Tensor, fitted: Fit, away: Tensor, squares: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of mean, variance and logit, by way of the couplings of the next round."""
    precision, total = fitted.variance.reciprocal(), grad_score.sum(-1)
    grad_mean = over_children(grad_score, away) * precision
    pull = over_children(grad_score, squares) * precision
    grad_variance = 0.5 * (pull - total.unsqueeze(-1)) * precision
    return grad_mean, grad_variance, total * torch.sigmoid(-fitted.logit)
