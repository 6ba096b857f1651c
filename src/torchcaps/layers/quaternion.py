"""Votes that are rotations: the product of a child's quaternion and a learned one."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils import parametrize

from torchcaps.core import UserError, hamilton

from .fc import FcCaps

_SIZE = 4


class HamiltonMatrices(nn.Module):
    """The matrices that multiply quaternions (w, x, y, z) from the right by learned unit quaternions.

    A vote q w says: where this part is turned by q, its object is turned by q w. When the whole scene turns
    by r, the part turns by r q and its vote becomes r (q w): votes turn with the scene by construction.
    """

    def forward(
        self, quaternions: Float[Tensor, "matrices out_caps 4"]
    ) -> Float[Tensor, "matrices 4 out_caps 4"]:
        """Row p of a matrix is the product of the unit p and the learned quaternion, brought to length 1."""
        # not a buffer: one that is in no file of weights stays empty in a network made on the meta device
        units = torch.eye(_SIZE, device=quaternions.device, dtype=quaternions.dtype)
        return hamilton(units[:, None], F.normalize(quaternions, dim=-1).unsqueeze(1))

    def right_inverse(self, weight: Tensor) -> Tensor:
        """Quaternions near 1, as far from it as the first rows of `weight` are from 0."""
        return weight[:, 0] + weight.new_tensor((1.0, 0.0, 0.0, 0.0))


def use_quaternion_votes(layer: FcCaps) -> FcCaps:
    """The same layer with a unit quaternion for each matrix, four numbers instead of sixteen."""
    if layer.in_pose != _SIZE or layer.weight.shape[-1] != _SIZE or layer.pose_rows != 1:
        raise UserError("quaternion votes need children and parents whose poses are vectors of 4 numbers")
    parametrize.register_parametrization(layer, "weight", HamiltonMatrices())
    return layer
