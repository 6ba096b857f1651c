"""Self-routing: each child decides alone where it belongs (Hahn, Pyeon & Kim 2019)."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, einsum, nn

from torchcaps.core import Routed

from .api import ROUTINGS, RoutingShape, keep_float32, require_sizes
from .cost import RoutingCost, softmax_cost


@keep_float32
def mean_votes(
    votes: Float[Tensor, "*where in_caps out_caps pose"],
    activations: Float[Tensor, "*where in_caps"],
    *,
    coupling: Float[Tensor, "*where in_caps out_caps"],
) -> Routed:
    """Parents as means of votes, weighted by activations and given couplings."""
    weights = coupling.to(votes.dtype) * activations.unsqueeze(-1)
    mass = weights.sum(-2)
    poses = einsum("...io,...iod->...od", weights, votes) / (mass.unsqueeze(-1) + 1e-7)
    return Routed(poses, mass / (activations.sum(-1, keepdim=True) + 1e-7), coupling)


@keep_float32
def self_routing(
    votes: Float[Tensor, "*where in_caps out_caps pose"],
    activations: Float[Tensor, "*where in_caps"],
    *,
    keys: Float[Tensor, "in_caps out_caps pose"],
    bias: Float[Tensor, "in_caps out_caps"],
) -> Routed:
    """Route each child by a learned linear function of its own votes, without iterations or agreement.

    The paper computes the logits from the child's pose, which a routing does not see. A vote is a linear
    image of that pose, so the logits here are linear in the pose too; where the pose of a parent has at least
    as many dimensions as the child's and the matrices have full rank, the two forms can express the same
    functions.

    Args:
        votes: One pose prediction per (input, output) pair.
        activations: Weight of each child in its parents' poses and activations.
        keys: What a child's vote is compared with.
        bias: Added to the logits.

    Returns:
        Weighted means of the votes, the share of the active children as activations, and the couplings.
    """
    logits = einsum("...iod,iod->...io", votes, keys.to(votes.dtype)) + bias.to(votes.dtype)
    return mean_votes(votes, activations, coupling=logits.softmax(dim=-1))


@ROUTINGS.register("self_routing")
class SelfRouting(nn.Module):
    """`self_routing` with its learned keys and bias, both zero at first: an even split."""

    def __init__(self, shape: RoutingShape) -> None:
        super().__init__()
        self.keys = nn.Parameter(torch.zeros(shape.in_caps, shape.out_caps, shape.pose))
        self.bias = nn.Parameter(torch.zeros(shape.in_caps, shape.out_caps))

    def forward(
        self,
        votes: Float[Tensor, "*where in_caps out_caps pose"],
        activations: Float[Tensor, "*where in_caps"],
    ) -> Routed:
        """Route `votes`."""
        require_sizes(self.keys, votes.shape[-3:])
        return self_routing(votes, activations, keys=self.keys, bias=self.bias)

    def read_out(
        self,
        votes: Float[Tensor, "*where in_caps out_caps pose"],
        activations: Float[Tensor, "*where in_caps"],
        coupling: Float[Tensor, "*where in_caps out_caps"],
    ) -> Routed:
        """The parents that `coupling` makes, as after the last round."""
        return mean_votes(votes, activations, coupling=coupling)

    def cost(self, shape: RoutingShape) -> RoutingCost:
        """Work at one position: one logit and one weighted mean."""
        in_caps, out_caps, pose = shape
        pairs = in_caps * out_caps
        elementwise = 3 * pairs + in_caps * softmax_cost(out_caps) + out_caps * (pose + 1)
        return RoutingCost(2 * pairs * pose, elementwise + in_caps + 1 + out_caps)
