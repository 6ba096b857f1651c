"""Lengths of poses, and squash functions, which shorten a pose below one without turning it."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

_LONGEST = 1e8  # from here on a squashed length is one in float64 too


def pose_lengths(poses: Float[Tensor, "*where pose"]) -> Float[Tensor, "*where"]:
    """Euclidean lengths; that of a zero pose has a gradient of zero."""
    # on a CPU the norm of numbers that do not lie side by side takes ten times as long
    return torch.linalg.vector_norm(poses.contiguous() if poses.is_cpu else poses, dim=-1)


def squash(poses: Float[Tensor, "*where pose"], eps: float = 1e-8) -> Float[Tensor, "*where pose"]:
    """Poses of length n²/(1+n²) (Sabour 2017, eq. 1).

    `eps` stands inside the root so that a zero pose has a finite gradient. A pose that holds an infinity
    becomes NaN.

    Examples:
        >>> squash(torch.tensor([3.0, 4.0])).norm()  # 25 / 26
        tensor(0.9615)
    """
    if poses.dtype == torch.float16:  # holds neither n² of n beyond 255 nor eps
        return squash(poses.float(), eps).to(poses.dtype)
    poses = poses / squash_divisor(poses)
    squared_length = poses.square().sum(-1, keepdim=True)
    shrink = squared_length / (1 + squared_length)  # finite, and never above one: the divisor saw to that
    return poses * ((squared_length + eps).rsqrt() * shrink)


def squash_exponential(
    poses: Float[Tensor, "*where pose"], eps: float = 1e-8
) -> Float[Tensor, "*where pose"]:
    """Poses of length 1 - exp(-n), steeper near zero (Mazzia 2021, eq. 2).

    `eps` is as in `squash`, and so is what becomes of infinities.
    """
    if poses.dtype == torch.float16:
        return squash_exponential(poses.float(), eps).to(poses.dtype)
    poses = poses / squash_divisor(poses)
    negative_length = -(poses.square().sum(-1, keepdim=True) + eps).sqrt()
    return poses * (torch.expm1(negative_length) / negative_length)


def squash_divisor(poses: Float[Tensor, "*where pose"]) -> Float[Tensor, "*where 1"]:
    """What to divide poses by before a squash: one, or more for those whose n² might overflow.

    A squash gives these a length of one before and after, and the gradient may take the divisor as constant.
    """
    poses = poses.detach()
    if poses.is_cpu:  # the largest norm there takes several times as long
        largest = poses.abs().amax(-1, keepdim=True)
    else:
        largest = torch.linalg.vector_norm(poses, ord=float("inf"), dim=-1, keepdim=True)
    return (largest / _LONGEST).clamp(min=1)
