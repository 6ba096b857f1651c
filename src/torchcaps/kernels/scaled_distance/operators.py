"""Fused vote-and-route for dense capsule layers, scaled-distance routing: the votes are never stored.

Formulas as in `routing.scaled_distance`. Plain PyTorch keeps several tensors of `O(B I J P)` numbers for each
round: 151 MB each at batch 128 for the hidden layer of gamma-CapsNet, 1152 children and 32 parents of 8
numbers. Here the votes are computed again wherever they are needed, and what is kept beside inputs and
results is `O(B r J P)`. On CUDA, in float32, for children's poses of up to 32 numbers and parents of up to
2048 in all, 64 of 32 for example, the number of parents and that of a pose's numbers rounded up to powers of
two.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from ..availability import kernel_obstacle, round_up
from ..operator import once_differentiable, operator
from .state import DistanceInputs, DistanceSettings, DistanceState

_MOST_NUMBERS = 2048  # of a sample's parents: a program holds them all
_MOST_POSE = 32  # of a child's pose, over which a loop is unrolled


def fused_scaled_distance_routing(
    poses: Float[Tensor, "batch in_caps in_pose"],
    activations: Float[Tensor, "batch in_caps"],
    weight: Float[Tensor, "matrices in_pose out_caps pose"],
    bias: Float[Tensor, "out_caps pose"] | None = None,
    *,
    settings: DistanceSettings,
    return_coupling: bool = False,
) -> tuple[Float[Tensor, "batch out_caps pose"], Float[Tensor, "batch in_caps out_caps"] | None]:
    """Output poses, differentiable in all tensors, and the last round's couplings, without gradient.

    Args:
        poses: Child capsules; child i votes with `weight[i % matrices]`.
        activations: The lengths that their votes are limited to.
        weight: A matrix for each child, for each type (children ordered by position, then type), or one.
        bias: Added to the pooled votes in every round.
        settings: How to route.
        return_coupling: Otherwise they are None.
    """
    if reason := scaled_distance_unsupported_reason(poses, weight):
        raise ValueError(reason)
    routed, coupling, *_ = _routing_op(
        *(x.float().contiguous() for x in (poses, activations, weight)),
        None if bias is None else bias.float().contiguous(),
        *settings,
        return_coupling,
    )
    dtype = torch.promote_types(poses.dtype, weight.dtype)
    return routed.to(dtype), coupling.to(dtype) if return_coupling else None


def scaled_distance_unsupported_reason(poses: Tensor, weight: Tensor) -> str | None:
    """Why `fused_scaled_distance_routing` cannot take these inputs, in one sentence; None when it can."""
    return kernel_obstacle("scaled-distance routing", poses, weight) or _too_large(poses, weight)


def _too_large(poses: Tensor, weight: Tensor) -> str | None:
    if poses.numel() == 0:
        return "there is nothing to route"
    _, in_pose, out_caps, pose = weight.shape
    if round_up(out_caps) * round_up(pose) > _MOST_NUMBERS:
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


def _launch() -> ModuleType:
    from . import launch  # only here: a CPU install has no triton

    return launch


_INPUTS = "Tensor poses, Tensor activations, Tensor weight"


@operator(
    "scaled_distance_routing",
    f"({_INPUTS}, Tensor? bias, float sharpness, int iterations, bool whole_batch, bool full, bool keep)"
    " -> (Tensor, Tensor, Tensor, Tensor, Tensor)",
)
def _routing_op(  # noqa: PLR0913  operators take tensors one by one
    poses: Tensor,
    activations: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    sharpness: float,
    iterations: int,
    whole_batch: bool,
    full: bool,
    keep: bool,
) -> tuple[Tensor, ...]:
    settings = DistanceSettings(sharpness, iterations, whole_batch, full)
    return tuple(_launch().route(DistanceInputs(poses, activations, weight), bias, settings, keep))


@operator(
    "scaled_distance_routing_backward",
    f"(Tensor grad, {_INPUTS}, Tensor pooled, Tensor targets, Tensor means, float sharpness, "
    "bool full)"
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
    full: bool,
) -> tuple[Tensor, ...]:
    state = DistanceState(grad, grad, pooled, targets, means)  # neither poses nor couplings are read
    inputs = DistanceInputs(poses, activations, weight)
    return tuple(_launch().route_backward(grad.contiguous(), inputs, state, sharpness, full))


@_routing_op.register_fake
def _(poses, activations, weight, bias, sharpness, iterations, whole_batch, full, keep):  # noqa: ANN001, ANN202, PLR0913
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
    *children, bias, ctx.sharpness, _, _, ctx.full, _ = inputs
    ctx.has_bias = bias is not None
    ctx.save_for_backward(*children, *output[2:])
    ctx.mark_non_differentiable(*output[1:])
    ctx.set_materialize_grads(False)


def _backward(ctx: Any, grad: Tensor | None, *_: Tensor | None) -> tuple[Tensor | None, ...]:
    if grad is None:
        return (None,) * 9
    *grads, grad_bias = _routing_backward_op(grad, *ctx.saved_tensors, ctx.sharpness, ctx.full)
    return *grads, grad_bias if ctx.has_bias else None, *(None,) * 5


_routing_op.register_autograd(_backward, setup_context=_save)
once_differentiable(_routing_backward_op)
