"""Fused vote-and-route for dense capsule layers, scaled-distance routing: the votes are never stored.

Formulas as in `routing.scaled_distance`, with the mean distance taken in each sample. Plain PyTorch keeps
several tensors of `O(B I J P)` numbers for each round: 151 MB each at batch 128 for the hidden layer of
gamma-CapsNet, 1152 children and 32 parents of 8 numbers. Here the votes are computed again wherever they are
needed, and what is kept beside inputs and results is `O(B r J P)`. On CUDA, in float32, for children's poses
of up to 32 numbers and parents of up to 2048 in all, 64 of 32 for example, the number of parents and that of
a pose's numbers rounded up to powers of two.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from .scaled_distance_state import DistanceInputs, DistanceState

_HAS_TRITON = find_spec("triton") is not None
_KERNEL_DEVICE = "cuda"  # Triton interprets on a CPU
_MOST_NUMBERS = 2048  # of a sample's parents: a program holds them all
_MOST_POSE = 32  # of a child's pose, over which a loop is unrolled
_FLOATS = (torch.float32, torch.bfloat16, torch.float16)


def fused_scaled_distance_routing(
    poses: Float[Tensor, "batch in_caps in_pose"],
    activations: Float[Tensor, "batch in_caps"],
    weight: Float[Tensor, "matrices in_pose out_caps pose"],
    bias: Float[Tensor, "out_caps pose"] | None = None,
    *,
    iterations: int = 3,
    sharpness: float,
    return_coupling: bool = False,
) -> tuple[Float[Tensor, "batch out_caps pose"], Float[Tensor, "batch in_caps out_caps"] | None]:
    """Output poses, differentiable in all tensors, and the last round's couplings, without gradient.

    Args:
        poses: Child capsules; child i votes with `weight[i % matrices]`.
        activations: The lengths that their votes are limited to.
        weight: A matrix for each child, for each type (children ordered by position, then type), or one.
        bias: Added to the pooled votes in every round.
        iterations: 1 splits every child evenly.
        sharpness: The logit that half the mean distance is worth.
        return_coupling: Otherwise they are None.
    """
    if reason := scaled_distance_unsupported_reason(poses, weight):
        raise ValueError(reason)
    routed, coupling, *_ = _routing_op(
        *(x.float().contiguous() for x in (poses, activations, weight)),
        None if bias is None else bias.float().contiguous(),
        iterations,
        sharpness,
        return_coupling,
    )
    dtype = torch.promote_types(poses.dtype, weight.dtype)
    return routed.to(dtype), coupling.to(dtype) if return_coupling else None


def scaled_distance_unsupported_reason(poses: Tensor, weight: Tensor) -> str | None:
    """Why `fused_scaled_distance_routing` cannot take these inputs, in one sentence; None when it can."""
    if poses.device.type != _KERNEL_DEVICE:
        return "the fused kernel for scaled-distance routing runs on CUDA only"
    if not _HAS_TRITON:
        return "the fused kernel for CUDA needs the triton package"
    if poses.dtype not in _FLOATS or weight.dtype not in _FLOATS:
        return f"the fused kernel computes in float32, not in {poses.dtype} and {weight.dtype}"
    if poses.numel() == 0:
        return "there is nothing to route"
    return _too_large(poses, weight)


def _too_large(poses: Tensor, weight: Tensor) -> str | None:
    _, in_pose, out_caps, pose = weight.shape
    if _round_up(out_caps) * _round_up(pose) > _MOST_NUMBERS:
        return (
            f"{out_caps} parents of {pose} numbers exceed {_MOST_NUMBERS} numbers, rounded up to powers of 2"
        )
    if in_pose > _MOST_POSE:
        return f"the fused kernel takes children's poses of at most {_MOST_POSE} numbers, not {in_pose}"
    if max(poses.numel(), weight.numel(), poses.shape[0] * out_caps * pose) >= 2**31:
        return "the fused kernel takes fewer than 2**31 numbers in children, parents and matrices"
    if poses.shape[0] >= 2**16:  # one side of a launch grid
        return "the fused kernel takes fewer than 65536 samples"
    return None


def _round_up(size: int) -> int:
    return 1 << (size - 1).bit_length()


def _triton() -> Any:
    from . import scaled_distance_triton  # only here: a CPU install has no triton

    return scaled_distance_triton


_operator: Callable[..., Any] = torch.library.custom_op
_INPUTS = "Tensor poses, Tensor activations, Tensor weight"


@_operator(
    "torchcaps::scaled_distance_routing",
    mutates_args=(),
    schema=f"({_INPUTS}, Tensor? bias, int iterations, float sharpness, bool keep)"
    " -> (Tensor, Tensor, Tensor, Tensor, Tensor)",
)
def _routing_op(
    poses: Tensor,
    activations: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    iterations: int,
    sharpness: float,
    keep: bool,
) -> tuple[Tensor, ...]:
    inputs = DistanceInputs(poses, activations, weight)
    return tuple(_triton().route(inputs, bias, iterations, sharpness, keep))


@_operator(
    "torchcaps::scaled_distance_routing_backward",
    mutates_args=(),
    schema=f"(Tensor grad, {_INPUTS}, Tensor pooled, Tensor targets, Tensor means, float sharpness)"
    " -> (Tensor, Tensor, Tensor, Tensor)",
)
def _routing_backward_op(  # noqa: PLR0913  operators take tensors one by one
    grad: Tensor,
    poses: Tensor,
    activations: Tensor,
    weight: Tensor,
    pooled: Tensor,
    targets: Tensor,
    means: Tensor,
    sharpness: float,
) -> tuple[Tensor, ...]:
    state = DistanceState(grad, grad, pooled, targets, means)  # neither poses nor couplings are read
    inputs = DistanceInputs(poses, activations, weight)
    return tuple(_triton().route_backward(grad.contiguous(), inputs, state, sharpness))


@_routing_op.register_fake
def _(poses, activations, weight, bias, iterations, sharpness, keep):  # noqa: ANN001, ANN202
    parents = (poses.shape[0], *weight.shape[2:])
    return (
        poses.new_empty(parents),
        poses.new_empty(*poses.shape[:2], weight.shape[2]) if keep else poses.new_empty(0),
        poses.new_empty(iterations, *parents),
        poses.new_empty(iterations - 1, *parents),
        poses.new_empty(iterations - 1, poses.shape[0]),
    )


@_routing_backward_op.register_fake
def _(grad, poses, activations, weight, *_):  # noqa: ANN001, ANN002, ANN202
    return (*(torch.empty_like(x) for x in (poses, activations, weight)), weight.new_empty(weight.shape[2:]))


def _save(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    *children, bias, _, ctx.sharpness, _ = inputs
    ctx.has_bias = bias is not None
    ctx.save_for_backward(*children, *output[2:])
    ctx.mark_non_differentiable(*output[1:])
    ctx.set_materialize_grads(False)


def _backward(ctx: Any, grad: Tensor | None, *_: Tensor | None) -> tuple[Tensor | None, ...]:
    if grad is None:
        return (None,) * 7
    *grads, grad_bias = _routing_backward_op(grad, *ctx.saved_tensors, ctx.sharpness)
    return *grads, grad_bias if ctx.has_bias else None, None, None, None


_routing_op.register_autograd(_backward, setup_context=_save)
