"""What the parts of fused EM routing hand to each other; N windows, C children and O types in each."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor


class EMInputs(NamedTuple):
    """Children as each window sees them, and how they vote."""

    poses: Tensor  # (N, C, rows * in_columns)
    activations: Tensor  # (N, C)
    matrices: Tensor  # (C, in_columns, O, out_columns)
    offsets: Tensor | None  # (C, rows * out_columns), added to a child's votes; no gradient


class EMGrid(NamedTuple):
    """Windows of one sample, their side and step: the geometry in which parents compete."""

    rows: int
    columns: int
    side: int
    stride: int


class EMScales(NamedTuple):
    """Numbers of the loop that are not learned."""

    iterations: int
    inverse_temperature: float
    min_variance: float
    even_mass: float

    def temperature(self, step: int) -> float:
        """The inverse temperature of M-step `step`."""
        return self.inverse_temperature * (1 - 0.95 ** (step + 1))


class EMState(NamedTuple):
    """What a forward pass leaves behind; H is the numbers of a parent's pose.

    On a CPU scores and shifts are empty.
    """

    means: Tensor  # (iterations, N, O, H)
    variances: Tensor  # (iterations, N, O, H)
    masses: Tensor  # (iterations, N, O)
    logits: Tensor  # (iterations, N, O)
    scores: Tensor  # (iterations - 1, N, C, O)
    shifts: Tensor  # (iterations, N, C): couplings are exp(scores of the round before - shifts)


class EMGrads(NamedTuple):
    """Gradients of poses, activations, matrices, activation cost and vote cost."""

    poses: Tensor
    activations: Tensor
    matrices: Tensor
    activation_cost: Tensor
    vote_cost: Tensor
