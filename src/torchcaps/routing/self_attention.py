"""Self-attention routing without iterations (Efficient-CapsNet; Mazzia, Salvetti & Chiaberge 2021)."""

from __future__ import annotations

from functools import partial

import torch
from jaxtyping import Float
from torch import Tensor, nn

from torchcaps.core import Routed, squash_exponential
from torchcaps.kernels import fused_self_attention_routing, self_attention_unsupported_reason

from .api import ROUTINGS, RoutingShape, keep_float32
from .cost import RoutingCost, length_cost, softmax_cost, squash_exponential_cost
from .fused import FusedPath, UncastVotes, vector_obstacle


@keep_float32
def attended_votes(
    votes: Float[Tensor, "*where in_caps out_caps pose"],
    activations: Float[Tensor, "*where in_caps"],
    *,
    coupling: Float[Tensor, "*where in_caps out_caps"],
) -> Routed:
    """Parents as sums of votes, weighted by given couplings and squashed by the steeper squash."""
    del activations
    poses = squash_exponential((coupling.to(votes.dtype).unsqueeze(-1) * votes).sum(-3))
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
    agreement = (votes * votes.sum(-3, keepdim=True)).sum(-1) * votes.shape[-1] ** -0.5
    coupling = agreement.softmax(dim=-1)
    if prior is not None:
        coupling = coupling + prior.to(votes.dtype)
    return attended_votes(votes, activations, coupling=coupling)


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
        elementwise += out_caps * (squash_exponential_cost(pose) + length_cost(pose))
        return RoutingCost(2 * pairs * pose, elementwise)
