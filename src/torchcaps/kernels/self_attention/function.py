"""Fused self-attention routing: one product casts the votes, one kernel routes them, one differentiates.

Plain PyTorch takes many small operations for the few capsules of an Efficient-CapsNet. `kernels.py` has the
formulas.
"""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from torchcaps.core import without_autocast

from ..availability import kernel_obstacle, round_up
from ..operator import once_differentiable, operator

_MOST_NUMBERS = 8192  # of the votes of one child: they must fit in the registers of a program


def fused_self_attention_routing(
    poses: Float[Tensor, "samples in_caps in_pose"],
    weight: Float[Tensor, "matrices in_pose out_caps pose"],
    prior: Float[Tensor, "in_caps out_caps"] | None = None,
) -> tuple[
    Float[Tensor, "samples out_caps pose"],
    Float[Tensor, "samples out_caps"],
    Float[Tensor, "samples in_caps out_caps"],
]:
    """Parents, their lengths and the couplings, which have no gradient.

    Args:
        poses: Of the children, in float32 on CUDA.
        weight: Child i votes with row `i % matrices`.
        prior: Added to the couplings after the softmax.
    """
    if reason := self_attention_unsupported_reason(poses, weight):
        raise ValueError(reason)
    (samples, in_caps, in_pose), (matrices, _, out_caps, _) = poses.shape, weight.shape
    if prior is not None and prior.shape != (in_caps, out_caps):  # the kernel would read past its end
        raise ValueError(f"prior must be {(in_caps, out_caps)}, got {tuple(prior.shape)}")
    grouped = poses.reshape(-1, matrices, in_pose).transpose(0, 1)
    with without_autocast(poses):
        votes = (grouped @ weight.flatten(2)).view(matrices, samples, in_caps // matrices, *weight.shape[2:])
    return _Attend.apply(votes, None if prior is None else prior.to(votes.dtype))


def self_attention_unsupported_reason(poses: Tensor, weight: Tensor) -> str | None:
    """Why `fused_self_attention_routing` cannot take these children, in one sentence; None when it can."""
    if poses.dtype != torch.float32 or weight.dtype != torch.float32:
        return f"the fused kernel takes float32, not {poses.dtype} and {weight.dtype}"
    parents, pose = weight.shape[2:]
    if round_up(parents) * round_up(pose) > _MOST_NUMBERS:
        return f"the votes of one child, {parents}x{pose}, exceed {_MOST_NUMBERS} numbers"
    return kernel_obstacle("self-attention routing", poses, weight)


class _Attend(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, votes: Tensor, prior: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        poses, lengths, *kept = _attend_op(votes, prior)
        ctx.save_for_backward(votes, prior, *kept)
        ctx.mark_non_differentiable(kept[0])
        ctx.set_materialize_grads(False)
        return poses, lengths, kept[0]

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, Tensor | None]:
        votes, prior, *kept = ctx.saved_tensors
        pooled = kept[-1]
        of_poses = torch.zeros_like(pooled) if grads[0] is None else grads[0]
        of_lengths = pooled.new_zeros(pooled.shape[:-1]) if grads[1] is None else grads[1]
        of_votes, of_prior = _attend_backward_op(of_poses, of_lengths, votes, prior, *kept)
        return of_votes, None if prior is None else of_prior


@operator(
    "self_attention",
    "(Tensor votes, Tensor? prior) -> (Tensor, Tensor, Tensor, Tensor, Tensor)",
)
def _attend_op(votes: Tensor, prior: Tensor | None) -> tuple[Tensor, ...]:
    from . import launch  # only here: a CPU install has no triton

    return tuple(launch.attend(votes, None if prior is None else prior.contiguous()))


@_attend_op.register_fake
def _(votes, prior):  # noqa: ANN001, ANN202
    matrices, samples, shared, num_out, pose = votes.shape
    poses, totals, pooled = (votes.new_empty(samples, num_out, pose) for _ in range(3))
    coupling = votes.new_empty(samples, matrices * shared, num_out)
    return poses, votes.new_empty(samples, num_out), coupling, totals, pooled


@operator(  # so that many gradients at once, which hold no memory of their own, are taken one by one
    "self_attention_backward",
    "(Tensor grad_poses, Tensor grad_lengths, Tensor votes, Tensor? prior, Tensor coupling, Tensor totals, "
    "Tensor pooled) -> (Tensor, Tensor)",
)
def _attend_backward_op(
    grad_poses: Tensor,
    grad_lengths: Tensor,
    votes: Tensor,
    prior: Tensor | None,
    coupling: Tensor,
    totals: Tensor,
    pooled: Tensor,
) -> tuple[Tensor, Tensor]:
    from . import launch

    grads = grad_poses.contiguous(), grad_lengths.contiguous()
    return launch.attend_backward(*grads, votes, (coupling, totals, pooled), prior is not None)


@_attend_backward_op.register_fake
def _(grad_poses, grad_lengths, votes, prior, coupling, totals, pooled):  # noqa: ANN001, ANN202
    return torch.empty_like(votes), votes.new_empty(0) if prior is None else torch.empty_like(prior)


once_differentiable(_attend_backward_op)
