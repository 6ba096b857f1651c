"""Squash functions: they shorten a pose to a length below one without turning it."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor


def squash(poses: Float[Tensor, "*where pose"], eps: float = 1e-8) -> Float[Tensor, "*where pose"]:
    """Poses of length n²/(1+n²) (Sabour 2017, eq. 1).

    `eps` stands inside the root so that a zero pose has a finite gradient. A pose whose n² overflows becomes
    zero and its gradient NaN: n beyond 1.8e19 in float32 and bfloat16.
    """
    if poses.dtype == torch.float16:  # holds neither n² of n beyond 255 nor eps
        return squash(poses.float(), eps).to(poses.dtype)
    squared_length = poses.square().sum(-1, keepdim=True)
    # n²/(1+n²), for large n written as 1 - 1/(1+n²), which is never above one; for small n that would cancel
    shrink = torch.where(
        squared_length < 1, squared_length / (1 + squared_length), 1 - 1 / (1 + squared_length)
    )
    return poses * ((squared_length + eps).rsqrt() * shrink)


def squash_exponential(
    poses: Float[Tensor, "*where pose"], eps: float = 1e-8
) -> Float[Tensor, "*where pose"]:
    """Poses of length 1 - exp(-n), steeper near zero (Mazzia 2021, eq. 2).

    `eps` is as in `squash`. A pose whose n² overflows becomes zero, and so does its gradient.
    """
    if poses.dtype == torch.float16:
        return squash_exponential(poses.float(), eps).to(poses.dtype)
    length = (poses.square().sum(-1, keepdim=True) + eps).sqrt()
    return poses * (-torch.expm1(-length) / length)
