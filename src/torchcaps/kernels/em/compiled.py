"""Fused EM routing on a CPU, by passes that numba compiles at their first use; float32 alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from ..tiles import work_side_by_side
from .competition import Competition
from .compiled_backward import differentiate_samples
from .compiled_passes import fit_samples
from .state import EMGrads, EMGrid, EMInputs, EMScales, EMState

_VECTOR = 16  # children are padded to multiples of it, so that no loop has a rest

__all__ = ["fit", "fit_backward"]


class _Layer:
    """One call's inputs as the compiled passes take them."""

    def __init__(self, inputs: EMInputs, grid: EMGrid, scales: EMScales) -> None:
        poses, activations, matrices, offsets = inputs
        self.windows = grid.rows * grid.columns
        self.samples = poses.shape[0] // self.windows
        self.count = matrices.shape[0]
        padding = (0, -self.count % _VECTOR)
        laid_out = F.pad(matrices.permute(2, 1, 3, 0), padding).contiguous()
        numbers = poses.shape[2] // matrices.shape[1] * matrices.shape[3]
        added = poses.new_zeros(numbers, self.count) if offsets is None else offsets.T
        places = Competition(grid, self.count, poses.device).places()
        absent = int(places.max()) + 1  # where the children of the padding stand
        self.children = poses.numpy(), activations.numpy()
        self.arrays = (
            laid_out.numpy(),
            F.pad(added, padding).contiguous().numpy(),
            F.pad(places, padding, value=absent).contiguous().numpy(),
        )
        temperatures = [scales.temperature(step) for step in range(scales.iterations)]
        self.scales = np.array(temperatures), scales.min_variance, scales.even_mass

    def tiles(self) -> list[tuple[int, int]]:
        """First and last samples, the last excluded."""
        return [(sample, sample + 1) for sample in range(self.samples)]

    def unpadded(self, grad_matrices: Tensor) -> Tensor:
        """Gradients of matrices in the order in which they came."""
        return grad_matrices[..., : self.count].permute(3, 1, 0, 2).contiguous()


def fit(inputs: EMInputs, costs: tuple[Tensor, Tensor], grid: EMGrid, scales: EMScales) -> EMState:
    """As `cpu.fit`."""
    layer = _Layer(inputs, grid, scales)
    windows, children, in_pose = inputs.poses.shape
    _, in_columns, types, columns = inputs.matrices.shape
    parents, new = (scales.iterations, windows, types), inputs.poses.new_empty
    pose = in_pose // in_columns * columns
    kept = new(*parents, pose), new(*parents, pose), new(parents), new(parents)
    state = tuple(each.numpy() for each in kept)
    given = tuple(cost.numpy() for cost in costs)

    def fit_tiles(tiles: Sequence[tuple[int, int]]) -> None:
        for tile in tiles:
            fit_samples(layer.children, layer.arrays, given, layer.scales, state, tile)

    work_side_by_side(fit_tiles, layer.tiles())
    return EMState(*kept, scores=new(0, windows, children, types), shifts=new(0, windows, children))


def fit_backward(
    grads: tuple[Tensor, Tensor],
    inputs: EMInputs,
    vote_cost: Tensor,
    state: EMState,
    grid: EMGrid,
    scales: EMScales,
) -> EMGrads:
    """As `cpu.fit_backward`."""
    layer = _Layer(inputs, grid, scales)
    of_children = torch.empty_like(inputs.poses), torch.empty_like(inputs.activations)
    targets = tuple(each.numpy() for each in of_children)
    known = tuple(each.numpy() for each in state[:4])
    numbers = *layer.scales, vote_cost.numpy()
    incoming = tuple(each.numpy() for each in grads)

    def differentiate(tiles: Sequence[tuple[int, int]]) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
        learned = np.zeros_like(layer.arrays[0]), np.zeros((2, inputs.matrices.shape[2]))
        for tile in tiles:
            differentiate_samples(
                layer.children, layer.arrays, numbers, known, incoming, targets, learned, tile
            )
        return learned

    shares = work_side_by_side(differentiate, layer.tiles())
    matrices, costs = (torch.from_numpy(np.sum(parts, axis=0)) for parts in zip(*shares, strict=True))
    return EMGrads(*of_children, layer.unpadded(matrices), *costs.to(vote_cost.dtype))
