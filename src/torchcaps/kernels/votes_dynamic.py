"""Fused dynamic routing over given votes, for the few children that meet at one position of a map.

A convolution has written the votes; what plain PyTorch then spends on each of several passes an iteration is
spent once: all iterations run on one reading of the votes (formulas in `dynamic.py`). The tensors of
`O(batch T positions O)` and `O(batch T positions O P)` that autograd would keep for each iteration never
exist: the backward pass needs the votes and the output alone. On CUDA; a position may have up to 8192 vote
numbers, with the sizes of its axes rounded up to powers of two.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from math import prod
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from .dynamic import Gradient

_HAS_TRITON = find_spec("triton") is not None
_KERNEL_DEVICE = "cuda"  # Triton interprets on a CPU
_MOST_NUMBERS = 8192  # votes of one position: they must fit in the registers of a program
_FLOATS = (torch.float32, torch.bfloat16, torch.float16)


def fused_map_routing(
    votes: Float[Tensor, "batch in_caps positions out_caps pose"],
    bias: Float[Tensor, "out_caps pose"] | None = None,
    *,
    iterations: int = 3,
    gradient: Gradient = "full",
    leaky: bool = False,
) -> tuple[Float[Tensor, "batch out_caps positions pose"], Float[Tensor, "batch out_caps positions"]]:
    """Output poses and their lengths in float32, differentiable in votes and bias.

    Args:
        votes: Children at one position compete there; this order of axes is what a channels-last convolution
            of every child type writes, and the result's is what the next one reads.
        bias: Added to the pooled votes in every iteration.
        iterations: As in `fused_dynamic_routing`, like the settings that follow.
        gradient: "full" or "last".
        leaky: One more logit, fixed at 0.
    """
    if iterations < 1:
        raise ValueError(f"iterations must be at least 1, got {iterations}")
    if reason := map_unsupported_reason(votes, (votes.shape[1], *votes.shape[3:])):
        raise ValueError(reason)
    offset = None if bias is None else bias.float().contiguous()
    return _map_routing_op(votes.contiguous(), offset, iterations, gradient == "full", leaky)


def map_unsupported_reason(votes: Tensor, sizes: tuple[int, int, int]) -> str | None:
    """Why `fused_map_routing` cannot take votes of this device and dtype, in one sentence; None when it can.

    Args:
        votes: Or any tensor like them.
        sizes: Children, parents and pose at one position.
    """
    if votes.device.type != _KERNEL_DEVICE:
        return "the fused kernel for given votes runs on CUDA only"
    if not _HAS_TRITON:
        return "the fused kernel for CUDA needs the triton package"
    if votes.dtype not in _FLOATS:
        return f"the fused kernel computes in float32, not in {votes.dtype}"
    if prod(1 << (side - 1).bit_length() for side in sizes) > _MOST_NUMBERS:
        return f"the votes of one position, {'x'.join(map(str, sizes))}, exceed {_MOST_NUMBERS} numbers"
    return None


def _triton() -> Any:
    from . import votes_dynamic_triton  # only here: a CPU install has no triton

    return votes_dynamic_triton


_operator: Callable[..., Any] = torch.library.custom_op


@_operator(
    "torchcaps::map_routing",
    mutates_args=(),
    schema="(Tensor votes, Tensor? bias, int iterations, bool full, bool leaky) -> (Tensor, Tensor)",
)
def _map_routing_op(
    votes: Tensor, bias: Tensor | None, iterations: int, full: bool, leaky: bool
) -> tuple[Tensor, Tensor]:
    return _triton().route(votes, bias, iterations, leaky)


@_operator(
    "torchcaps::map_routing_backward",
    mutates_args=(),
    schema="(Tensor grad_poses, Tensor grad_lengths, Tensor votes, Tensor? bias, Tensor poses, "
    "int iterations, bool full, bool leaky) -> (Tensor, Tensor)",
)
def _map_routing_backward_op(  # noqa: PLR0913  an operator takes its tensors one by one
    grad_poses: Tensor,
    grad_lengths: Tensor,
    votes: Tensor,
    bias: Tensor | None,
    poses: Tensor,
    iterations: int,
    full: bool,
    leaky: bool,
) -> tuple[Tensor, Tensor]:
    grads = grad_poses.contiguous(), grad_lengths.contiguous()
    return _triton().route_backward(grads, votes, bias, poses, iterations, full, leaky)


@_map_routing_op.register_fake
def _(votes, bias, iterations, full, leaky):  # noqa: ANN001, ANN202
    batch, _, positions, num_out, pose = votes.shape
    poses = votes.new_empty(batch, num_out, positions, pose, dtype=torch.float32)
    return poses, votes.new_empty(batch, num_out, positions, dtype=torch.float32)


@_map_routing_backward_op.register_fake
def _(grad_poses, grad_lengths, votes, bias, poses, iterations, full, leaky):  # noqa: ANN001, ANN202, PLR0913
    return torch.empty_like(votes), votes.new_empty(votes.shape[3:], dtype=torch.float32)


def _save(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    votes, bias, *ctx.settings = inputs
    ctx.save_for_backward(votes, bias, output[0])


def _backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
    votes, bias, poses = ctx.saved_tensors
    grad_votes, grad_bias = _map_routing_backward_op(*grads, votes, bias, poses, *ctx.settings)
    return grad_votes, None if bias is None else grad_bias, None, None, None


_map_routing_op.register_autograd(_backward, setup_context=_save)
