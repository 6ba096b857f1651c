"""No routing at all: an even split, and one transformation for all (Aff-CapsNet; Gu & Tresp 2020)."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn

from torchcaps.core import Routed, squash

from .api import ROUTINGS, RoutingShape, keep_float32, require_sizes
from .cost import RoutingCost, length_cost, squash_cost


@keep_float32
def even_routing(
    votes: Float[Tensor, "*where in_caps out_caps pose"],
    activations: Float[Tensor, "*where in_caps"],
    *,
    bias: Float[Tensor, "out_caps pose"] | None = None,
) -> Routed:
    """Split every child evenly: the first round of dynamic routing, and the last.

    Args:
        votes: One pose prediction per (input, output) pair.
        activations: Not read.
        bias: Added to each parent's pooled votes.

    Returns:
        Output poses, their lengths as activations, and the even couplings.
    """
    del activations
    share = 1 / votes.shape[-2]
    pooled = votes.sum(-3) * share
    poses = squash(pooled if bias is None else pooled + bias.to(votes.dtype))
    return Routed(poses, torch.linalg.vector_norm(poses, dim=-1), votes.new_full(votes.shape[:-1], share))


@ROUTINGS.register("shared_matrix")
class SharedMatrixRouting(nn.Module):
    """`even_routing`, which also asks its layer to use the same matrices for all children.

    A routing sees votes, not matrices: `shares_matrices` is what `FcCaps` and `ConvCaps2d` read when they
    choose how many to make. A layer whose sharing was set by hand keeps it.
    """

    shares_matrices = True

    def __init__(self, shape: RoutingShape, *, bias: bool = True) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.full((shape.out_caps, shape.pose), 0.1)) if bias else None

    def forward(
        self,
        votes: Float[Tensor, "*where in_caps out_caps pose"],
        activations: Float[Tensor, "*where in_caps"],
    ) -> Routed:
        """Route `votes`."""
        require_sizes(self.bias, votes.shape[-2:])
        return even_routing(votes, activations, bias=self.bias)

    def cost(self, shape: RoutingShape) -> RoutingCost:
        """Work at one position: a sum."""
        in_caps, out_caps, pose = shape
        components = out_caps * pose
        elementwise = in_caps * components + components + (0 if self.bias is None else components)
        return RoutingCost(0, elementwise + out_caps * (squash_cost(pose) + length_cost(pose)))
