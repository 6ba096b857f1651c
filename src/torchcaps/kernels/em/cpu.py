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

from collections.abc import Sequence

from torch import Tensor

from ..tiles import work_side_by_side
from .cpu_backward import fit_backward
from .cpu_layer import LEAST_MASS, Fit, Layer, over_children, square_distances
from .state import EMGrid, EMInputs, EMScales, EMState

__all__ = ["fit", "fit_backward"]


def fit(inputs: EMInputs, costs: tuple[Tensor, Tensor], grid: EMGrid, scales: EMScales) -> EMState:
    """All rounds, given the activation and vote costs; the last means and logits are the result."""
    layer, rounds = Layer(inputs, grid), scales.iterations
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
) -> Fit:
    """Parents fitted to `weights`; `squares` are the votes' squared distances from their means after it."""
    mass = weights.sum(-1) + LEAST_MASS
    share = weights / mass.unsqueeze(-1)
    mean = over_children(share, votes)
    # around the mean, not E[v²]-E[v]²: that difference cancels for votes far from zero
    variance = over_children(share, square_distances(votes, mean, squares)) + scales.min_variance
    cost = (votes.shape[2] * costs[1] + 0.5 * variance.log().sum(-1)) * mass / scales.even_mass
    return Fit(mean, variance, mass, scales.temperature(step) * (costs[0] - cost))
