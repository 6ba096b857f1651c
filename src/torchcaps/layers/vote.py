"""Votes: what each child predicts for the pose of each parent."""

from __future__ import annotations

from einops import rearrange
from jaxtyping import Float
from torch import Tensor, einsum


def cast_votes(
    poses: Float[Tensor, "*where in_caps in_pose"],
    weight: Float[Tensor, "matrices in_pose out_caps out_pose"],
) -> Float[Tensor, "*where in_caps out_caps out_pose"]:
    """Each child's pose through its matrices (thesis eq. vote); child i uses those of row `i % matrices`."""
    grouped = rearrange(poses, "... (n g) p -> ... n g p", g=weight.shape[0])
    return einsum("...ngp,gpod->...ngod", grouped, weight).flatten(-4, -3)
