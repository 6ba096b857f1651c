"""The squash of many poses in one kernel forwards and one backwards, with the lengths of its result.

Plain PyTorch goes over a map of poses several times forwards and backwards, in float32, and keeps copies for
the backward pass. The kernel keeps the poses as they came alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from torchcaps.core import squash, squash_exponential

from ..availability import kernel_obstacle
from ..operator import operator

_MOST_NUMBERS = 1024  # of one pose: it must fit in the registers of a program
Squash = Callable[[Tensor], Tensor]


def fused_squash(
    poses: Float[Tensor, "*where pose"], function: Squash = squash
) -> tuple[Float[Tensor, "*where pose"], Float[Tensor, "*where"]]:
    """`function` of the poses, and the lengths of what it gives, in float32.

    Args:
        poses: On CUDA, in float32 or half precision.
        function: `squash` or `squash_exponential`.
    """
    if reason := squash_unsupported_reason(poses, function):
        raise ValueError(reason)
    squashed, lengths = _Squash.apply(poses.contiguous(), function)
    return squashed, lengths


def squash_unsupported_reason(poses: Tensor, function: Squash = squash) -> str | None:
    """Why `fused_squash` cannot take these poses, in one sentence; None when it can."""
    if function not in (squash, squash_exponential):
        return f"there is no fused kernel for {getattr(function, '__name__', function)}"
    if poses.shape[-1] > _MOST_NUMBERS:
        return f"a pose of {poses.shape[-1]} numbers is longer than the {_MOST_NUMBERS} of the fused kernel"
    return kernel_obstacle("the squash", poses)


class _Squash(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, poses: Tensor, function: Squash) -> tuple[Tensor, Tensor]:
        ctx.save_for_backward(poses)
        ctx.function = function
        return _squash_op(poses, function is squash_exponential)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        (poses,) = ctx.saved_tensors
        if torch.is_grad_enabled():  # create_graph: the plain function has a derivative of its derivative
            squashed = ctx.function(poses.float())
            results = squashed, torch.linalg.vector_norm(squashed, dim=-1)
            return torch.autograd.grad(results, poses, grads, create_graph=True)[0], None
        return _squash_backward_op(poses, *grads, ctx.function is squash_exponential), None


@operator("squash", "(Tensor poses, bool exponential) -> (Tensor, Tensor)")
def _squash_op(poses: Tensor, exponential: bool) -> tuple[Tensor, Tensor]:
    from . import launch  # only here: a CPU install has no triton

    return launch.squash_poses(poses, exponential)


@_squash_op.register_fake
def _(poses, exponential):  # noqa: ANN001, ANN202
    lengths = poses.new_empty(poses.shape[:-1], dtype=torch.float32)
    return torch.empty_like(poses, dtype=torch.float32), lengths


@operator(  # so that many gradients at once, which hold no memory of their own, are taken one by one
    "squash_backward",
    "(Tensor poses, Tensor grad_squashed, Tensor grad_lengths, bool exponential) -> Tensor",
)
def _squash_backward_op(
    poses: Tensor, grad_squashed: Tensor, grad_lengths: Tensor, exponential: bool
) -> Tensor:
    from . import launch

    grads = grad_squashed.contiguous(), grad_lengths.contiguous()
    return launch.squash_poses_backward(poses, grads, exponential)


@_squash_backward_op.register_fake
def _(poses, grad_squashed, grad_lengths, exponential):  # noqa: ANN001, ANN202
    return torch.empty_like(poses)
