"""Votes: what each child predicts for the pose of each parent."""

from __future__ import annotations

from einops import rearrange
from jaxtyping import Float
from torch import Tensor, einsum

from torchcaps.core import UserError


def cast_votes(
    poses: Float[Tensor, "*where in_caps in_pose"],
    weight: Float[Tensor, "matrices in_columns out_caps out_columns"],
    pose_rows: int = 1,
) -> Float[Tensor, "*where in_caps out_caps out_pose"]:
    """Each child's pose through its matrices (thesis eq. vote); child i uses those of row `i % matrices`.

    A pose is a matrix of `pose_rows` rows, flattened row by row; its vote is the matrix product. One row is a
    vector, four rows of four the poses of Hinton 2018.
    """
    if pose_rows == 1:  # one product, with fewer views than `einsum` makes of it
        grouped = poses.reshape(-1, weight.shape[0], poses.shape[-1]).transpose(0, 1)
        votes = (grouped @ weight.flatten(2)).transpose(0, 1)
        return votes.reshape(*poses.shape[:-1], *weight.shape[2:])
    grouped = rearrange(poses, "... (n g) (r p) -> ... n g r p", g=weight.shape[0], r=pose_rows)
    return einsum("...ngrp,gpod->...ngord", grouped, weight).flatten(-5, -4).flatten(-2)


def matrix_columns(in_pose: int, out_pose: int, pose_rows: int) -> tuple[int, int]:
    """Columns of a child's and of a parent's pose matrix of `pose_rows` rows."""
    if min(in_pose, out_pose, pose_rows) < 1 or in_pose % pose_rows or out_pose % pose_rows:
        raise UserError(f"poses of {in_pose} and {out_pose} dimensions are no matrices of {pose_rows} rows")
    return in_pose // pose_rows, out_pose // pose_rows
