"""Fused vote-and-route for dense capsule layers, dynamic routing: the votes are never stored.

    vote_ij = u_i W_ij,   V_j(t) = sum_{q<t} v_j(q),   c_ij(t) = softmax_j(vote_ij . V_j(t)),
    s_j(t) = sum_i c_ij(t) vote_ij + bias_j,   v_j(t) = squash(s_j(t))

The logits only ever accumulate agreements with the same votes, so `V`, of J*P numbers a sample, is all that
an iteration needs to know of the earlier ones, and the backward pass recomputes the couplings from it. Beside
inputs and gradients the memory is O(B r J P), and while a backward pass runs a workspace that stops growing
with the batch, instead of several tensors of O(B I J P): 94 MB each at batch 128 for 1152 children and 10
classes of 16 numbers, 9.4 GB each for 1000 classes.

`cpu.py` runs on any device and in float64; `launch.py` on CUDA in float32, for poses of up to 64 numbers.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any, Literal, get_args

import torch
from jaxtyping import Float
from torch import Tensor

from torchcaps.core import without_autocast

from ..availability import is_for_kernel, kernel_obstacle
from ..operator import once_differentiable, operator
from . import cpu
from .state import RouteState

# through all iterations; with the couplings as constants; or with the votes as constants in all but the last
Gradient = Literal["full", "last", "last_votes"]

_MAX_POSE = 64  # a tile of votes must fit in registers
_FLOATS = (torch.float32, torch.float64, torch.bfloat16, torch.float16)
# Plain PyTorch is faster on a CPU with few poses for each matrix; the larger a sample's intermediates, which
# then leave the cache, the more poses it takes. Measured for 2 to 500 parents and 64 to 1152 children.
_FEWEST_VOTERS, _MOST_FEW_VOTERS = 6, 64
_SAMPLE_OF_ONE_VOTER = 40_000  # numbers of a sample for which one more pose is needed
_MOST_PLAIN_VOTES = 1 << 27  # 512 MB; the plain path holds several tensors of that size


def fused_dynamic_routing(
    poses: Float[Tensor, "batch in_caps in_pose"],
    weight: Float[Tensor, "matrices in_pose out_caps pose"],
    bias: Float[Tensor, "out_caps pose"] | None = None,
    *,
    iterations: int = 3,
    gradient: Gradient = "full",
    leaky: bool = False,
) -> Float[Tensor, "batch out_caps pose"]:
    """Output poses of dynamic routing (Sabour 2017, procedure 1), differentiable in poses, weight and bias.

    Half-precision inputs are computed in float32; the result has the dtype that poses and weight promote to.

    Args:
        poses: Child capsules; child i votes with `weight[i % matrices]`.
        weight: A matrix for each child, for each type (children ordered by position, then type), or one.
        bias: Added to the pooled votes in every iteration.
        iterations: 1 splits every child evenly.
        gradient: "full" goes through all iterations, "last" treats the couplings as constants, "last_votes"
            does so for poses and weight, while the bias learns through all iterations.
        leaky: One more logit, fixed at 0, takes a share of every child and is dropped.
    """
    _check(poses, weight, bias, iterations)
    if gradient not in get_args(Gradient):
        raise ValueError(f"gradient must be one of {get_args(Gradient)}, got {gradient!r}")
    dtype = torch.promote_types(poses.dtype, weight.dtype)
    inputs = _cast(torch.promote_types(dtype, torch.float32), poses, weight, bias)
    routed, _, _ = _routing_op(*inputs, iterations, gradient, leaky)
    return routed.to(dtype)


def fused_dynamic_coupling(
    poses: Float[Tensor, "batch in_caps in_pose"],
    weight: Float[Tensor, "matrices in_pose out_caps pose"],
    bias: Float[Tensor, "out_caps pose"] | None = None,
    *,
    iterations: int = 3,
    leaky: bool = False,
) -> Float[Tensor, "batch in_caps out_caps"]:
    """Couplings of the last iteration, without gradient; they sum to one over `out_caps` unless `leaky`."""
    _check(poses, weight, bias, iterations)
    dtype = torch.promote_types(torch.promote_types(poses.dtype, weight.dtype), torch.float32)
    inputs = _cast(dtype, poses.detach(), weight.detach(), None if bias is None else bias.detach())
    return _coupling_op(*inputs, iterations, leaky)


def dynamic_unsupported_reason(poses: Tensor, weight: Tensor, *, insist: bool = True) -> str | None:
    """Why `fused_dynamic_routing` cannot take these inputs, in one sentence; None when it can.

    Without `insist` there is also a reason where plain PyTorch is faster.
    """
    if poses.dtype not in _FLOATS or weight.dtype not in _FLOATS:
        return f"poses and weight must be floating point, got {poses.dtype} and {weight.dtype}"
    if poses.device != weight.device:
        return f"poses and weight must be on one device, got {poses.device} and {weight.device}"
    if is_for_kernel(poses):
        return kernel_obstacle("dynamic routing", poses, weight) or _too_large(poses, weight)
    if insist or poses.device.type != "cpu":
        return None
    (batch, num_in, in_pose), (matrices, _, num_out, out_pose) = poses.shape, weight.shape
    voters, enough = batch * num_in // matrices, _FEWEST_VOTERS
    if batch * num_in * num_out * out_pose <= _MOST_PLAIN_VOTES:
        larger = num_out * max(num_in, in_pose * matrices) // _SAMPLE_OF_ONE_VOTER
        enough = max(enough, min(larger, _MOST_FEW_VOTERS))
    if voters >= enough:
        return None
    return f"with {voters} poses to a matrix and {num_out} parents the plain path is faster on a CPU"


def _too_large(poses: Tensor, weight: Tensor) -> str | None:
    if max(weight.shape[1], weight.shape[3]) > _MAX_POSE:
        return f"the fused kernel for CUDA takes poses of at most {_MAX_POSE} numbers"
    if max(poses.shape[1], weight.shape[2]) >= 2**16:  # one side of a launch grid
        return "the fused kernel for CUDA takes fewer than 65536 capsules on either side"
    parents = poses.shape[0] * weight.shape[2] * weight.shape[3]
    if max(poses.numel(), weight.numel(), parents) >= 2**31:  # places are 32-bit numbers
        return "the fused kernel for CUDA takes fewer than 2**31 numbers in children, parents and matrices"
    return None


def _check(poses: Tensor, weight: Tensor, bias: Tensor | None, iterations: int) -> None:
    if iterations < 1:
        raise ValueError(f"iterations must be at least 1, got {iterations}")
    if poses.dim() != 3 or weight.dim() != 4 or poses.shape[2] != weight.shape[1]:
        raise ValueError(
            "poses [batch, in_caps, in_pose] and weight [matrices, in_pose, out_caps, pose] do not fit: "
            f"{tuple(poses.shape)} and {tuple(weight.shape)}"
        )
    if weight.shape[0] < 1 or poses.shape[1] % weight.shape[0] != 0:
        raise ValueError(f"{poses.shape[1]} children cannot share {weight.shape[0]} matrices evenly")
    if bias is not None and bias.shape != weight.shape[2:]:
        raise ValueError(f"bias must be {tuple(weight.shape[2:])}, got {tuple(bias.shape)}")
    if reason := dynamic_unsupported_reason(poses, weight):
        raise ValueError(reason)


def _cast(dtype: torch.dtype, *tensors: Tensor | None) -> list[Tensor | None]:
    """What the kernels take: contiguous tensors of that type."""
    return [None if tensor is None else tensor.to(dtype).contiguous() for tensor in tensors]


def _backend(poses: Tensor, weight: Tensor) -> ModuleType:
    """The module that computes these inputs; empty inputs go to plain PyTorch."""
    if is_for_kernel(poses) and poses.numel() > 0 and weight.numel() > 0:
        from . import launch  # only here: a CPU install has no triton

        return launch
    return cpu


@operator(
    "dynamic_routing",
    "(Tensor poses, Tensor weight, Tensor? bias, int iterations, str gradient, bool leaky)"
    " -> (Tensor, Tensor, Tensor)",
)
def _routing_op(
    poses: Tensor, weight: Tensor, bias: Tensor | None, iterations: int, gradient: str, leaky: bool
) -> tuple[Tensor, Tensor, Tensor]:
    with without_autocast(poses):  # autocast also acts inside registered operators
        return tuple(_backend(poses, weight).route(poses, weight, bias, iterations, leaky))


@operator(
    "dynamic_routing_backward",
    "(Tensor grad, Tensor poses, Tensor weight, Tensor pooled, Tensor direction, bool full, "
    "bool leaky) -> (Tensor, Tensor, Tensor)",
)
def _routing_backward_op(
    grad: Tensor,
    poses: Tensor,
    weight: Tensor,
    pooled: Tensor,
    direction: Tensor,
    full: bool,
    leaky: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    state = RouteState(pooled[-1], pooled, direction)
    with without_autocast(poses):
        return _backend(poses, weight).route_backward(grad.contiguous(), poses, weight, state, full, leaky)


@operator(
    "dynamic_coupling",
    "(Tensor poses, Tensor weight, Tensor? bias, int iterations, bool leaky) -> Tensor",
)
def _coupling_op(poses: Tensor, weight: Tensor, bias: Tensor | None, iterations: int, leaky: bool) -> Tensor:
    backend = _backend(poses, weight)
    with without_autocast(poses):
        state = backend.route(poses, weight, bias, iterations, leaky)
        return backend.coupling(poses, weight, state.direction[-1], leaky)


@_routing_op.register_fake
def _(poses, weight, bias, iterations, gradient, leaky):  # noqa: ANN001, ANN202
    shape = (poses.shape[0], *weight.shape[2:])
    return poses.new_empty(shape), poses.new_empty(iterations, *shape), poses.new_empty(iterations, *shape)


@_routing_backward_op.register_fake
def _(grad, poses, weight, pooled, direction, full, leaky):  # noqa: ANN001, ANN202
    return torch.empty_like(poses), torch.empty_like(weight), weight.new_empty(weight.shape[2:])


@_coupling_op.register_fake
def _(poses, weight, bias, iterations, leaky):  # noqa: ANN001, ANN202
    return poses.new_empty(*poses.shape[:2], weight.shape[2])


def _save(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    poses, weight, bias, _, ctx.gradient, ctx.leaky = inputs
    ctx.has_bias = bias is not None
    ctx.save_for_backward(poses, weight, *output[1:])
    ctx.mark_non_differentiable(*output[1:])
    ctx.set_materialize_grads(False)


def _backward(ctx: Any, grad: Tensor | None, *_: Tensor | None) -> tuple[Tensor | None, ...]:
    if grad is None:
        return (None,) * 6
    inputs = (grad, *ctx.saved_tensors)
    grad_poses, grad_weight, grad_bias = _routing_backward_op(*inputs, ctx.gradient == "full", ctx.leaky)
    if ctx.gradient == "last_votes" and ctx.has_bias:  # with constant votes it is the bias's full gradient
        *_, grad_bias = _routing_backward_op(*inputs, True, ctx.leaky)
    return grad_poses, grad_weight, grad_bias if ctx.has_bias else None, None, None, None


_routing_op.register_autograd(_backward, setup_context=_save)
once_differentiable(_routing_backward_op)
