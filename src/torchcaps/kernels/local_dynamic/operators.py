"""Fused dynamic routing over stored votes, for the few children that meet at one position of a map (SegCaps).

A convolution has stored the votes, and each position is routed by itself, unlike in DeepCaps, whose
`map_routing` couples all positions. All iterations run on one reading of the votes (formulas in
`dynamic/operators.py`); plain PyTorch reads them several times an iteration. The tensors of
`O(batch T positions O)` and `O(batch T positions O P)` that autograd would keep for each iteration never
exist: the backward pass needs the votes and the output alone.

`cpu.py` runs on any device and in float64; `compiled.py` on a CPU in float32, where numba is installed;
`launch.py` on CUDA in float32, where a position may have up to 8192 vote numbers, with the sizes of its axes
rounded up to powers of two.
"""

from __future__ import annotations

from math import prod
from types import ModuleType
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from torchcaps.core import without_autocast

from ..availability import has_numba, is_for_kernel, kernel_obstacle, round_up
from ..dynamic import Gradient
from ..operator import once_differentiable, operator
from . import cpu

_MOST_NUMBERS = 8192  # votes of one position: they must fit in the registers of a program
_FEWEST_NUMBERS = 1 << 11  # of all votes, on a CPU: below them the number of operations decides
_WORTH_COMPILING = 1 << 18  # of all votes: fewer would not gain the seconds that compiling takes


def fused_local_dynamic_routing(
    votes: Float[Tensor, "batch in_caps positions out_caps pose"],
    bias: Float[Tensor, "out_caps pose"] | None = None,
    *,
    iterations: int = 3,
    gradient: Gradient = "full",
    leaky: bool = False,
) -> tuple[Float[Tensor, "batch out_caps positions pose"], Float[Tensor, "batch out_caps positions"]]:
    """Output poses and their lengths in at least float32, differentiable in votes and bias.

    Args:
        votes: Children at one position compete there. On CUDA this order of axes is what a channels-last
            convolution of every child type writes, and the result's is what the next one reads; on a CPU
            both have their positions innermost in memory, as its convolutions do.
        bias: Added to the pooled votes in every iteration.
        iterations: As in `fused_dynamic_routing`, like the settings that follow.
        gradient: "full" or "last".
        leaky: One more logit, fixed at 0.
    """
    if iterations < 1:
        raise ValueError(f"iterations must be at least 1, got {iterations}")
    if gradient == "last_votes":
        raise ValueError("gradient must be 'full' or 'last' here, got 'last_votes'")
    if reason := local_dynamic_unsupported_reason(votes):
        raise ValueError(reason)
    if votes.shape[3] == 1 and not leaky:
        iterations = 1  # a single out capsule gets all of every child, in each iteration
    dtype = torch.promote_types(votes.dtype, torch.float32)
    offset = None if bias is None else bias.to(dtype).contiguous()
    laid_out = votes.contiguous() if is_for_kernel(votes) else cpu.planes(votes).permute(0, 1, 4, 2, 3)
    return _routing_op(laid_out, offset, iterations, gradient == "full", leaky)


def local_dynamic_unsupported_reason(votes: Tensor, *, insist: bool = True) -> str | None:
    """Why `fused_local_dynamic_routing` cannot take these votes, in one sentence; None when it can.

    Without `insist` there is also a reason where plain PyTorch is faster.
    """
    if not votes.is_floating_point():
        return f"votes must be floating point, got {votes.dtype}"
    if not is_for_kernel(votes):
        return None if insist or votes.device.type != "cpu" else _faster_plain(votes)
    if reason := kernel_obstacle("stored votes", votes):
        return reason
    sizes = (votes.shape[1], *votes.shape[3:])
    if prod(round_up(side) for side in sizes) > _MOST_NUMBERS:
        return f"the votes of one position, {'x'.join(map(str, sizes))}, exceed {_MOST_NUMBERS} numbers"
    return None


def _faster_plain(votes: Tensor) -> str | None:
    if votes.shape[1] > 1 and votes.numel() >= _FEWEST_NUMBERS:
        return None
    return f"with {votes.shape[1]} children and {votes.numel()} numbers the plain path is faster on a CPU"


def _backend(votes: Tensor) -> ModuleType:
    """The module that computes these votes."""
    if is_for_kernel(votes):
        from . import launch  # only here: a CPU install has no triton

        return launch
    if _is_for_numba(votes):
        from . import compiled  # only here: numba is an extra, and slow to import

        return compiled
    return cpu


def _is_for_numba(votes: Tensor) -> bool:
    fits = votes.device.type == "cpu" and votes.dtype in (torch.float32, torch.bfloat16)
    return fits and votes.numel() >= _WORTH_COMPILING and has_numba()


@operator(
    "local_dynamic_routing",
    "(Tensor votes, Tensor? bias, int iterations, bool full, bool leaky) -> (Tensor, Tensor)",
)
def _routing_op(
    votes: Tensor, bias: Tensor | None, iterations: int, full: bool, leaky: bool
) -> tuple[Tensor, Tensor]:
    with without_autocast(votes):  # autocast also acts inside registered operators
        return _backend(votes).route(votes, bias, iterations, leaky)


@operator(
    "local_dynamic_routing_backward",
    "(Tensor grad_poses, Tensor grad_lengths, Tensor votes, Tensor? bias, Tensor poses, "
    "int iterations, bool full, bool leaky) -> (Tensor, Tensor)",
)
def _routing_backward_op(  # noqa: PLR0913  an operator takes its tensors one by one
    grad_poses: Tensor,
    grad_lengths: Tensor,
    votes: Tensor,
    bias: Tensor | None,
    poses: Tensor,
    iterations: int,
    full: bool,
    leaky: bool,
) -> tuple[Tensor, Tensor]:
    backend, grads = _backend(votes), (grad_poses, grad_lengths.contiguous())
    if is_for_kernel(votes):
        grads = grad_poses.contiguous(), grads[1]
    with without_autocast(votes):
        return backend.route_backward(grads, votes, bias, poses, iterations, full, leaky)


@_routing_op.register_fake
def _(votes, bias, iterations, full, leaky):  # noqa: ANN001, ANN202
    batch, _, positions, num_out, pose = votes.shape
    dtype = torch.promote_types(votes.dtype, torch.float32)
    lengths = votes.new_empty(batch, num_out, positions, dtype=dtype)
    if is_for_kernel(votes):
        return votes.new_empty(batch, num_out, positions, pose, dtype=dtype), lengths
    return votes.new_empty(batch, num_out, pose, positions, dtype=dtype).mT, lengths


@_routing_backward_op.register_fake
def _(grad_poses, grad_lengths, votes, bias, poses, iterations, full, leaky):  # noqa: ANN001, ANN202, PLR0913
    return torch.empty_like(votes), votes.new_empty(votes.shape[3:], dtype=poses.dtype)


def _save(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    votes, bias, *ctx.settings = inputs
    ctx.save_for_backward(votes, bias, output[0])


def _backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
    votes, bias, poses = ctx.saved_tensors
    grad_votes, grad_bias = _routing_backward_op(*grads, votes, bias, poses, *ctx.settings)
    return grad_votes, None if bias is None else grad_bias, None, None, None


_routing_op.register_autograd(_backward, setup_context=_save)
once_differentiable(_routing_backward_op)
