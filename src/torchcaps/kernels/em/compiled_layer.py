"""What the compiled passes of EM routing take: children innermost, as many as fill whole vectors."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from .competition import Competition
from .state import EMGrid, EMInputs

Array: TypeAlias = NDArray[Any]
_VECTOR = 16  # numbers that a processor works on at once; a rest would be worked on one by one


class CompiledLayer:
    """One call's inputs; children are added that are absent, whose votes are zero and have no weight."""

    def __init__(self, inputs: EMInputs, grid: EMGrid) -> None:
        poses, activations, matrices, offsets = inputs
        self.windows = grid.rows * grid.columns
        self.samples = poses.shape[0] // self.windows
        self.count, self.inner, self.types, columns = matrices.shape
        self.rows = poses.shape[2] // self.inner
        self.pose, self.padded = self.rows * columns, self.count + -self.count % _VECTOR
        self.children = poses.numpy(), activations.numpy()
        shape = (self.rows, columns)
        added = poses.new_zeros(*shape, self.count) if offsets is None else offsets.T.unflatten(0, shape)
        self.arrays = self._padded(matrices.permute(2, 1, 3, 0)), self._padded(added)
        places = Competition(grid, self.count, poses.device).places()
        self.place = self._padded(places, value=int(places.max()) + 1)
        met = np.bincount(self.place.ravel())[self.place]  # windows in which a child stands
        self.even = (1 / (self.types * met)).astype(np.float32)[:, None]

    def _padded(self, tensor: Tensor, value: int = 0) -> Array:
        return F.pad(tensor, (0, self.padded - self.count), value=value).contiguous().numpy()

    def unpadded(self, grad_matrices: Tensor) -> Tensor:
        """Gradients of matrices in the order in which these came."""
        return grad_matrices[..., : self.count].permute(3, 1, 0, 2).contiguous()

    def span(self, sample: int) -> slice:
        """The windows of a sample."""
        return slice(sample * self.windows, (sample + 1) * self.windows)

    def load(self, sample: int) -> tuple[Array, Array]:
        """Poses `[window, row, inner, child]` and activations of a sample."""
        poses = np.zeros((self.windows, self.rows * self.inner, self.padded), np.float32)
        active = np.zeros((self.windows, self.padded), np.float32)
        given, place = self.children, self.span(sample)
        poses[..., : self.count] = given[0][place].transpose(0, 2, 1)
        active[:, : self.count] = given[1][place]
        return poses.reshape(self.windows, self.rows, self.inner, -1), active

    def store(self, sample: int, grad_poses: Array, target: Array) -> None:
        """Writes gradients that lie as loaded poses do."""
        flat = grad_poses.reshape(self.windows, -1, self.padded)[..., : self.count]
        target[self.span(sample)] = flat.transpose(0, 2, 1)

    def empty(self, *shape: int) -> Array:
        """Memory of float32 numbers."""
        return np.empty(shape, np.float32)

    def vote_memory(self) -> tuple[Array, Array]:
        """That of one parent's votes, `[row, column, child]` and `[pose, child]`."""
        votes = self.empty(self.rows, self.pose // self.rows, self.padded)
        return votes, votes.reshape(self.pose, self.padded)

    def map_memory(self) -> tuple[Array, Array, Array]:
        """Two numbers of each child of a sample, and one of each child of a window."""
        spots = int(self.place.max()) + 1
        return self.empty(spots), self.empty(spots), self.empty(self.padded)
