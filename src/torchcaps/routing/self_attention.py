"""Self-attention routing without iterations (Efficient-CapsNet; Mazzia, Salvetti & Chiaberge 2021)."""

from __future__ import annotations

from functools import partial
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from torchcaps.core import Routed, squash_exponential
from torchcaps.kernels import fused_self_attention_routing, self_attention_unsupported_reason

from .api import ROUTINGS, RoutingShape, keep_float32, require_sizes
from .cost import RoutingCost, length_cost, softmax_cost, squash_cost
from .fused import FusedPath, UncastVotes, vector_obstacle

_MANY = 256  # children; with fewer, training takes longer by matrix products


@keep_float32
def attended_votes(
    votes: Float[Tensor, "*where in_caps out_caps pose"],
    activations: Float[Tensor, "*where in_caps"],
    *,
    coupling: Float[Tensor, "*where in_caps out_caps"],
) -> Routed:
    """Parents as sums of votes, weighted by given couplings and squashed by the steeper squash."""
    del activations
    poses = squash_exponential(_sum_products(votes, coupling.to(votes.dtype).unsqueeze(-1), -3))
    return Routed(poses, torch.linalg.vector_norm(poses, dim=-1), coupling)


@keep_float32
def self_attention_routing(
    votes: Float[Tensor, "*where in_caps out_caps pose"],
    activations: Float[Tensor, "*where in_caps"],
    *,
    prior: Float[Tensor, "in_caps out_caps"] | None = None,
) -> Routed:
    """Route each vote by its agreement with the sum of all votes for the same parent.

    Args:
        votes: One pose prediction per (input, output) pair.
        activations: Not read.
        prior: Learned preference, added after the softmax: couplings may then leave [0, 1].

    Returns:
        Output poses, their lengths as activations, and the couplings.
    """
    agreement = _sum_products(votes, votes.sum(-3, keepdim=True), -1) * votes.shape[-1] ** -0.5
    coupling = agreement.softmax(dim=-1)
    if prior is not None:
        coupling = coupling + prior.to(votes.dtype)
    return attended_votes(votes, activations, coupling=coupling)


def _sum_products(votes: Tensor, weights: Tensor, dim: Literal[-1, -3]) -> Tensor:
    """`(votes * weights).sum(dim)`, over the pose or over the children.

    The products are as large as the votes, and a CPU takes longer to get memory for those of many children
    than to multiply. Votes that lie child by child, as fully connected capsules cast them, are a matrix for
    each parent, whose product with the weights needs no such memory; others would have to be copied.
    """
    if votes.shape[-3] < _MANY or not votes.is_cpu or votes.stride(0) > votes.stride(-3):
        return (votes * weights).sum(dim)
    votes, weights = votes.transpose(-3, -2), weights.transpose(-3, -2)  # (where, out_caps, in_caps, pose)
    product = votes @ weights.mT if dim == -1 else weights.mT @ votes
    return product.transpose(-3, -2).squeeze(dim)


@ROUTINGS.register("self_attention")
class SelfAttentionRouting(nn.Module):
    """`self_attention_routing` with its learned prior, which makes the order of the children matter."""

    def __init__(self, shape: RoutingShape, *, prior: bool = True) -> None:
        super().__init__()
        self.prior = nn.Parameter(torch.zeros(shape.in_caps, shape.out_caps)) if prior else None

    def forward(
        self,
        votes: Float[Tensor, "*where in_caps out_caps pose"],
        activations: Float[Tensor, "*where in_caps"],
    ) -> Routed:
        """Route `votes`."""
        require_sizes(self.prior, votes.shape[-3:-1])
        return self_attention_routing(votes, activations, prior=self.prior)

    def read_out(
        self,
        votes: Float[Tensor, "*where in_caps out_caps pose"],
        activations: Float[Tensor, "*where in_caps"],
        coupling: Float[Tensor, "*where in_caps out_caps"],
    ) -> Routed:
        """The parents that `coupling` makes, as after the last round."""
        return attended_votes(votes, activations, coupling=coupling)

    def fuse(self, votes: UncastVotes, *, insist: bool) -> FusedPath:
        """As `FusedRouting.fuse`."""
        if torch.compiler.is_compiling() and not insist:
            return "the compiler fuses the operations of the plain path itself"
        reason = vector_obstacle(votes, self.parameters())
        reason = reason or self_attention_unsupported_reason(votes.poses, votes.weight)
        return reason or partial(self._route_fused, votes)

    def _route_fused(self, votes: UncastVotes) -> Routed:
        require_sizes(self.prior, (votes.poses.shape[-2], votes.weight.shape[2]))
        poses, lengths, coupling = fused_self_attention_routing(
            votes.poses.flatten(0, -3), votes.weight, self.prior
        )
        fields = (field.view(*votes.where, *field.shape[1:]) for field in (poses, lengths, coupling))
        return Routed(*fields)

    def summands(
        self,
        votes: Float[Tensor, "*where in_caps out_caps pose"],
        activations: Float[Tensor, "*where in_caps"],
        coupling: Float[Tensor, "*where in_caps out_caps"],
    ) -> Float[Tensor, "*where in_caps out_caps pose"]:
        """Votes times couplings, in which the prior is."""
        del activations
        return coupling.unsqueeze(-1) * votes

    def cost(self, shape: RoutingShape) -> RoutingCost:
        """Work at one position: sum the votes, agree once, pool once."""
        in_caps, out_caps, pose = shape
        pairs = in_caps * out_caps
        elementwise = pairs * pose + pairs + in_caps * softmax_cost(out_caps)
        elementwise += 0 if self.prior is None else pairs
        elementwise += out_caps * (squash_cost(pose) + length_cost(pose))
        return RoutingCost(2 * pairs * pose, elementwise)
