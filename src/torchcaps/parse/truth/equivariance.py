"""Whether the pose of a class moves with the image as a linear map of it."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from torchcaps.core import UserError

_PER_DIMENSION = 2  # images of a class, in each half, for each dimension of a pose


def equivariance_error(
    poses: Float[Tensor, "images pose"],
    moved: Float[Tensor, "images pose"],
    labels: Int64[Tensor, " images"],
) -> float:
    """The part of the moved poses that no linear map of the poses before explains.

    For each class a map, with an offset, is fitted on every second image and tried on the others. 0 is a
    class capsule that turns as its image does; 1 is one whose pose before says nothing of that after.

    Args:
        poses: Of the class capsule of each image.
        moved: The same after one transformation of all images.
        labels: The class of each image; classes have bases of their own.
    """
    residual = total = 0.0
    for label in sorted(set(labels.tolist())):
        chosen = (labels == label).nonzero().squeeze(1)
        before, after = poses[chosen].double(), moved[chosen].double()
        if len(chosen) // 2 < _PER_DIMENSION * (poses.shape[1] + 1):
            continue
        inputs = torch.cat([before, torch.ones_like(before[:, :1])], dim=1)
        # minimum norm: poses of a trained class may span fewer dimensions than they have
        fitted = torch.linalg.pinv(inputs[::2], rtol=1e-8) @ after[::2]
        error = after[1::2] - inputs[1::2] @ fitted
        residual += float(error.square().sum())
        total += float((after[1::2] - after[::2].mean(0)).square().sum())
    if total == 0:
        raise UserError(
            f"no class has {2 * _PER_DIMENSION * (poses.shape[1] + 1)} images whose poses differ; "
            "give more images"
        )
    return residual / total
