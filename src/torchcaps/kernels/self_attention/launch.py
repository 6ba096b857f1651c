"""Launches of self-attention routing on CUDA."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
import triton
from torch import Tensor

from .kernels import attend_grad_kernel, attend_kernel

_NUMBERS = 4096  # votes that a program holds at a time, with sizes rounded up to powers of two


class Attended(NamedTuple):
    """What the forward pass gives, and what the backward pass needs of it."""

    poses: Tensor
    lengths: Tensor
    coupling: Tensor
    totals: Tensor  # of the votes for each parent
    pooled: Tensor  # parents before their squash


def attend(votes: Tensor, prior: Tensor | None) -> Attended:
    """Route votes `[matrices, samples, children of a matrix, out_caps, pose]`."""
    matrices, samples, shared, num_out, pose = votes.shape
    parents = [votes.new_empty(samples, num_out, pose) for _ in range(3)]
    lengths = votes.new_empty(samples, num_out)
    coupling = votes.new_empty(samples, matrices * shared, num_out)
    poses, totals, pooled = parents
    _launch(
        attend_kernel,
        votes,
        prior is not None,
        (votes, votes if prior is None else prior, poses, lengths, coupling, totals, pooled),
    )
    return Attended(poses, lengths, coupling, totals, pooled)


def attend_backward(
    grad_poses: Tensor, grad_lengths: Tensor, votes: Tensor, kept: tuple[Tensor, ...], has_prior: bool
) -> tuple[Tensor, Tensor]:
    """Gradients of the votes and of the prior, if any; `kept` are couplings, totals and pooled votes."""
    grad_votes = torch.empty_like(votes)
    grad_coupling = torch.empty_like(kept[0]) if has_prior else grad_votes
    tensors = (votes, *kept, grad_poses, grad_lengths, grad_votes, grad_coupling)
    _launch(attend_grad_kernel, votes, has_prior, tensors)
    return grad_votes, grad_coupling.sum(0) if has_prior else votes.new_empty(0)


def _launch(kernel: Any, votes: Tensor, has_prior: bool, tensors: tuple[Tensor, ...]) -> None:
    matrices, samples, shared, num_out, pose = votes.shape
    out, number = triton.next_power_of_2(num_out), triton.next_power_of_2(pose)
    children = min(max(1, _NUMBERS // (out * number)), triton.next_power_of_2(matrices * shared))
    if samples == 0:
        return
    with torch.cuda.device_of(votes):
        kernel[(samples,)](
            *tensors,
            samples,
            matrices * shared,
            matrices,
            J=num_out,
            P=pose,
            IN=children,
            OUT=out,
            POSE=number,
            PRIOR=has_prior,
            num_warps=4,
        )
