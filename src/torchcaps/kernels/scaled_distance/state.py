"""What the parts of fused scaled-distance routing hand to each other."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor


class DistanceInputs(NamedTuple):
    """Children and how they vote."""

    poses: Tensor  # (batch, in_caps, in_pose)
    activations: Tensor  # (batch, in_caps)
    weight: Tensor  # (matrices, in_pose, out_caps, pose)


class DistanceSettings(NamedTuple):
    """How to route."""

    sharpness: float  # the logit that half the mean distance is worth
    iterations: int = 3  # 1 splits every child evenly
    whole_batch: bool = False  # take the mean distance over all samples together, instead of in each
    full: bool = True  # differentiate all rounds; otherwise couplings are constants


class DistanceState(NamedTuple):
    """What a forward pass leaves behind; all but the couplings is small beside the poses."""

    poses: Tensor  # (batch, out_caps, pose), the result
    coupling: Tensor  # (batch, in_caps, out_caps) of the last round, or (0,) where they are not kept
    pooled: Tensor  # (iterations, batch, out_caps, pose): s of each round, before the squash
    targets: Tensor  # (iterations - 1, batch, out_caps, pose): what the votes are compared with, squash(s)
    means: Tensor  # (iterations - 1, batch): the mean distance to them, that of all where it is one


class DistanceGrads(NamedTuple):
    """Gradients of poses, activations, weight and bias."""

    poses: Tensor
    activations: Tensor
    weight: Tensor
    bias: Tensor
