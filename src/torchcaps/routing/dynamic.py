"""Routing by agreement (Sabour, Frosst & Hinton 2017, procedure 1)."""

from __future__ import annotations

from functools import partial
from typing import get_args

import torch
from einops import rearrange
from jaxtyping import Float
from torch import Tensor, einsum, nn
from torch.nn import functional as F

from torchcaps.core import Routed, require_choice, squash
from torchcaps.kernels import (
    Gradient,
    dynamic_unsupported_reason,
    fused_dynamic_coupling,
    fused_dynamic_routing,
    fused_local_dynamic_routing,
    local_dynamic_unsupported_reason,
)

from .api import ROUTINGS, RoutingShape, keep_float32, require_iterations, require_sizes, say_settings
from .cost import RoutingCost, length_cost, softmax_cost, squash_cost
from .fused import FusedPath, StoredVotes, UncastVotes, vector_obstacle

_BIAS_IS_LATE = "only the plain path adds the bias in the last round alone"


def require_gradient(gradient: Gradient) -> Gradient:
    """`gradient` itself when there is one of that name, else a clear error."""
    return require_choice("gradient", gradient, get_args(Gradient))


def of_inner_rounds(votes: Tensor, bias: Tensor, gradient: Gradient) -> tuple[Tensor, Tensor]:
    """Votes and bias as all rounds but the last see them: with or without gradients."""
    if gradient == "full":
        return votes, bias
    return votes.detach(), bias.detach() if gradient == "last" else bias


def even_split(
    votes: Float[Tensor, "*where in_caps out_caps pose"], leaky: bool = False
) -> Float[Tensor, "*where in_caps out_caps"]:
    """Couplings of the first round, to the bit what `split_over_parents` gives for equal logits of zero."""
    return votes.new_full(votes.shape[:-1], 1 / (votes.shape[-2] + leaky))


def split_over_parents(
    logits: Float[Tensor, "*where in_caps out_caps"], leaky: bool
) -> Float[Tensor, "*where in_caps out_caps"]:
    """Couplings: a softmax over the parents; `leaky` lets a child choose none of them, at logit zero."""
    return F.pad(logits, (0, 1)).softmax(dim=-1)[..., :-1] if leaky else logits.softmax(dim=-1)


@keep_float32
def pool_votes(
    votes: Float[Tensor, "*where in_caps out_caps pose"],
    activations: Float[Tensor, "*where in_caps"],
    *,
    coupling: Float[Tensor, "*where in_caps out_caps"],
    bias: Float[Tensor, "out_caps pose"] | None = None,
) -> Routed:
    """Parents as squashed sums of votes, weighted by given couplings (Sabour 2017, eq. 1 and 2).

    Args:
        votes: One pose prediction per (input, output) pair.
        activations: Not read.
        coupling: The share of each vote; handed back as it came.
        bias: Added to each parent's pooled votes.
    """
    del activations
    pooled = einsum("...io,...iod->...od", coupling.to(votes.dtype), votes)
    poses = squash(pooled if bias is None else pooled + bias.to(votes.dtype))
    return Routed(poses, torch.linalg.vector_norm(poses, dim=-1), coupling)


@keep_float32
def dynamic_routing(
    votes: Float[Tensor, "*where in_caps out_caps pose"],
    activations: Float[Tensor, "*where in_caps"],
    *,
    iterations: int = 3,
    gradient: Gradient = "full",
    leaky: bool = False,
    bias: Float[Tensor, "out_caps pose"] | None = None,
    inner_bias: bool = True,
) -> Routed:
    """Route votes to the output capsules they agree with.

    Args:
        votes: One pose prediction per (input, output) pair.
        activations: Not read: the length of a vote already carries its child's activation.
        iterations: Rounds of agreement; 1 means an even split.
        gradient: "full" differentiates all rounds (Sabour); "last" holds the couplings constant; "last_votes"
            holds the votes constant in all rounds but the last, and the bias learns through all of them (the
            thesis's code).
        leaky: Adds a "none of them" parent, so that couplings sum to less than one (Sabour 2017, section 7).
        bias: Added to each parent's pooled votes.
        inner_bias: Whether the bias is added in every round, or in the last alone (DeepCaps in the thesis).

    Returns:
        Output poses, their lengths as activations, and the couplings of the last round.

    Examples:
        >>> up, down = [0.0, 1.0], [0.0, -1.0]  # two children agree on parent 0, and not on parent 1
        >>> votes = torch.tensor([[[up, up], [up, down]]])
        >>> dynamic_routing(votes, torch.ones(1, 2), iterations=3).coupling[0, 0]
        tensor([0.7517, 0.2483])
    """
    require_iterations(iterations)
    require_gradient(gradient)
    offset = votes.new_zeros(()) if bias is None or not inner_bias else bias.to(votes.dtype)
    inner_votes, inner_offset = of_inner_rounds(votes, offset, gradient)
    coupling, logits = even_split(votes, leaky), None
    for _ in range(iterations - 1):
        poses = squash(einsum("...io,...iod->...od", coupling, inner_votes) + inner_offset)
        agreement = einsum("...iod,...od->...io", inner_votes, poses)
        logits = agreement if logits is None else logits + agreement
        coupling = split_over_parents(logits, leaky)
    return pool_votes(votes, activations, coupling=coupling, bias=bias)


@ROUTINGS.register("dynamic")
class DynamicRouting(nn.Module):
    """`dynamic_routing` with its settings and its learned bias (initially 0.1, as in Sabour's code)."""

    extra_repr = say_settings

    def __init__(
        self,
        shape: RoutingShape,
        *,
        iterations: int = 3,
        gradient: Gradient = "full",
        leaky: bool = False,
        bias: bool = True,
        inner_bias: bool = True,
    ) -> None:
        super().__init__()
        self.iterations = require_iterations(iterations)
        self.gradient: Gradient = require_gradient(gradient)
        self.leaky, self.inner_bias = leaky, inner_bias
        self.bias = nn.Parameter(torch.full((shape.out_caps, shape.pose), 0.1)) if bias else None

    def forward(
        self,
        votes: Float[Tensor, "*where in_caps out_caps pose"],
        activations: Float[Tensor, "*where in_caps"],
    ) -> Routed:
        """Route `votes`."""
        require_sizes(self.bias, votes.shape[-2:])
        return dynamic_routing(
            votes,
            activations,
            iterations=self.iterations,
            gradient=self.gradient,
            leaky=self.leaky,
            bias=self.bias,
            inner_bias=self.inner_bias,
        )

    def read_out(
        self,
        votes: Float[Tensor, "*where in_caps out_caps pose"],
        activations: Float[Tensor, "*where in_caps"],
        coupling: Float[Tensor, "*where in_caps out_caps"],
    ) -> Routed:
        """The parents that `coupling` makes, as after the last round."""
        return pool_votes(votes, activations, coupling=coupling, bias=self.bias)

    def summands(
        self,
        votes: Float[Tensor, "*where in_caps out_caps pose"],
        activations: Float[Tensor, "*where in_caps"],
        coupling: Float[Tensor, "*where in_caps out_caps"],
    ) -> Float[Tensor, "*where in_caps out_caps pose"]:
        """Votes times couplings."""
        del activations
        return coupling.unsqueeze(-1) * votes

    def fuse(self, votes: UncastVotes, *, insist: bool) -> FusedPath:
        """A kernel for any device; couplings come without gradients."""
        if not self.inner_bias:
            return _BIAS_IS_LATE
        if votes.return_coupling and len(votes.where) > 1 and not insist:
            return "the couplings were asked for, and at many positions the plain path is faster with them"
        poses = votes.poses.flatten(0, -3)
        return (
            vector_obstacle(votes, self.parameters())
            or dynamic_unsupported_reason(poses, votes.weight, insist=insist)
            or partial(self._route_fused, poses, votes)
        )

    def _route_fused(self, poses: Tensor, votes: UncastVotes) -> Routed:
        require_sizes(self.bias, votes.weight.shape[2:])
        inputs, rounds, leaky = (poses, votes.weight, self.bias), self.iterations, self.leaky
        flat = fused_dynamic_routing(*inputs, iterations=rounds, gradient=self.gradient, leaky=leaky)
        routed, coupling = flat.view(*votes.where, *flat.shape[1:]), None
        if votes.return_coupling:
            flat = fused_dynamic_coupling(*inputs, iterations=rounds, leaky=leaky)
            coupling = flat.view(*votes.where, *flat.shape[1:])
        return Routed(routed, torch.linalg.vector_norm(routed, dim=-1), coupling)

    def fuse_stored(self, votes: StoredVotes, *, insist: bool) -> FusedPath:
        """A kernel for any device that gives no couplings."""
        if not self.inner_bias:
            return _BIAS_IS_LATE
        if self.gradient == "last_votes":
            return "only the plain path lets the bias alone learn through all rounds of stored votes"
        if votes.return_coupling:
            return "the couplings were asked for, which only the plain path gives"
        flat = votes.votes.flatten(2, 3)
        reason = local_dynamic_unsupported_reason(flat, insist=insist)
        return reason or partial(self._route_stored, flat, votes)

    def _route_stored(self, flat: Tensor, votes: StoredVotes) -> Routed:
        require_sizes(self.bias, votes.votes.shape[-2:])
        poses, lengths = fused_local_dynamic_routing(
            flat, self.bias, iterations=self.iterations, gradient=self.gradient, leaky=self.leaky
        )
        height, width = votes.votes.shape[2:4]
        return Routed(
            rearrange(poses, "b o (h w) d -> b h w o d", h=height, w=width).to(votes.dtype),
            rearrange(lengths, "b o (h w) -> b h w o", h=height, w=width).to(votes.dtype),
            None,
        )

    def cost(self, shape: RoutingShape) -> RoutingCost:
        """Work at one position: pooling in each round, agreement and a split in all but the last."""
        in_caps, out_caps, pose = shape
        rounds, pairs = self.iterations, in_caps * out_caps
        biases = 0 if self.bias is None else rounds if self.inner_bias else 1
        elementwise = out_caps * (rounds * squash_cost(pose) + biases * pose + length_cost(pose))
        elementwise += (rounds - 1) * in_caps * softmax_cost(out_caps + self.leaky)
        elementwise += max(rounds - 2, 0) * pairs  # the first agreements are the logits
        return RoutingCost((2 * rounds - 1) * pairs * pose, elementwise)
