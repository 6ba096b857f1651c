"""Fused EM routing on a CPU, by passes that numba compiles at their first use; float32 alone.

One sample after the other goes through all rounds, side by side with those of other threads. Of a sample the
couplings of its rounds are kept, `O(C O)` for each of its windows.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from ..tiles import compute_side_by_side
from .compiled_backward import differentiate_round, differentiate_scores, through_votes
from .compiled_layer import Array, CompiledLayer
from .compiled_passes import fit_round, score_rounds
from .compiled_rows import compete, divide
from .state import EMGrads, EMGrid, EMInputs, EMScales, EMState

__all__ = ["fit", "fit_backward"]


def fit(inputs: EMInputs, costs: tuple[Tensor, Tensor], grid: EMGrid, scales: EMScales) -> EMState:
    """As `cpu.fit`."""
    layer = CompiledLayer(inputs, grid)
    windows, children, _ = inputs.poses.shape
    new, parents = inputs.poses.new_empty, (scales.iterations, windows, layer.types)
    kept = new(*parents, layer.pose), new(*parents, layer.pose), new(parents), new(parents)
    arrays, given = [each.numpy() for each in kept], tuple(cost.numpy() for cost in costs)

    def fit_samples(samples: Sequence[int]) -> None:
        memory, on_map = layer.vote_memory(), layer.map_memory()
        coupling = layer.empty(layer.windows, layer.types, layer.padded)
        for sample in samples:
            found, place = layer.load(sample), layer.span(sample)
            coupling[:] = layer.even
            for step in range(scales.iterations):
                numbers = scales.temperature(step), scales.min_variance, scales.even_mass
                of_round = tuple(each[step, place] for each in arrays)
                fit_round(found, layer.arrays, memory, given, numbers, coupling, of_round)
                if step < scales.iterations - 1:
                    divide(coupling, layer.place, *on_map)

    compute_side_by_side(fit_samples, range(layer.samples))
    return EMState(*kept, scores=new(0, windows, children, layer.types), shifts=new(0, windows, children))


def fit_backward(
    grads: tuple[Tensor, Tensor],
    inputs: EMInputs,
    vote_cost: Tensor,
    state: EMState,
    grid: EMGrid,
    scales: EMScales,
) -> EMGrads:
    """As `cpu.fit_backward`."""
    layer = CompiledLayer(inputs, grid)
    of_children = torch.empty_like(inputs.poses), torch.empty_like(inputs.activations)
    temperatures = np.array([scales.temperature(step) for step in range(scales.iterations)])
    numbers = temperatures, scales.min_variance, scales.even_mass, vote_cost.numpy()
    incoming, targets = (tuple(each.numpy() for each in some) for some in (grads, of_children))

    def differentiate(samples: Sequence[int]) -> tuple[Array, Array]:
        walk = _Backward(layer, numbers, state)
        for sample in samples:
            walk.run(sample, incoming, targets)
        return walk.grad_matrices, walk.grad_costs

    shares = compute_side_by_side(differentiate, range(layer.samples))
    matrices, costs = (torch.from_numpy(np.sum(parts, axis=0)) for parts in zip(*shares, strict=True))
    return EMGrads(*of_children, layer.unpadded(matrices), *(cost.to(vote_cost.dtype) for cost in costs))


class _Backward:
    """The backward pass of one sample after the other; gradients of matrices and costs are their sums."""

    def __init__(
        self, layer: CompiledLayer, numbers: tuple[Array, float, float, Array], state: EMState
    ) -> None:
        self.layer, self.numbers, self.known = layer, numbers, [each.numpy() for each in state[:4]]
        self.rounds, children = len(numbers[0]), (layer.windows, layer.types, layer.padded)
        self.memory = layer.vote_memory()
        self.grad_memory = layer.vote_memory()
        self.on_map = layer.map_memory()
        self.couplings, self.grad_scores = (layer.empty(self.rounds, *children) for _ in range(2))
        self.factors = layer.empty(self.rounds, *children[:2], 3, layer.pose)
        self.grad_shares = layer.empty(*children)
        self.of_sample = np.empty_like(layer.arrays[0])
        self.grad_matrices, self.grad_costs = np.zeros_like(self.of_sample), np.zeros((2, layer.types))

    def run(self, sample: int, grads: tuple[Array, ...], of_children: tuple[Array, ...]) -> None:
        """Fills the gradients of a sample's children."""
        layer, place = self.layer, self.layer.span(sample)
        # contiguous even where they would be without a copy: other strides are another type to numba
        parents = tuple(np.ascontiguousarray(each[:, place]) for each in self.known)
        found = layer.load(sample)
        incoming = tuple(each[place] for each in grads)
        self._split(found, parents)
        self.grad_scores[-1] = 0  # no round follows
        grad_active = np.zeros_like(found[1])
        for step in reversed(range(self.rounds)):
            grad_active += self._round(step, found, parents, incoming)
        grad_poses = np.zeros_like(found[0])
        self.of_sample[:] = 0
        walk, results = (self.couplings, self.grad_scores, self.factors), (grad_poses, self.of_sample)
        through_votes(found, layer.arrays, self.memory, self.grad_memory, parents[0], walk, results)
        self.grad_matrices += self.of_sample
        layer.store(sample, grad_poses, of_children[0])
        of_children[1][place] = grad_active[:, : layer.count]

    def _split(self, found: tuple[Array, Array], parents: tuple[Array, ...]) -> None:
        """The couplings of all rounds again, from what each knew of the parents."""
        self.couplings[0] = self.layer.even
        score_rounds(found, self.layer.arrays, self.memory, parents, self.couplings[1:])
        for coupling in self.couplings[1:]:
            divide(coupling, self.layer.place, *self.on_map)

    def _round(
        self, step: int, found: tuple[Array, Array], parents: tuple[Array, ...], grads: tuple[Array, ...]
    ) -> Array:
        """The gradient of the activations, by way of one round."""
        walk, grad_active = (self.couplings, self.grad_scores, self.factors), np.zeros_like(found[1])
        results = self.grad_shares, grad_active, self.grad_costs
        differentiate_round(
            step, found, self.layer.arrays, self.memory, self.numbers, parents, grads, walk, results
        )
        if step > 0:
            means = grad_active.copy()
            compete(means, self.layer.place, self.on_map[1])
            differentiate_scores(self.couplings[step], self.grad_shares, means, self.grad_scores[step - 1])
        return grad_active
