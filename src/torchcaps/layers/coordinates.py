"""Coordinate addition: the position of each child is added to its votes in a fully connected layer."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn

from torchcaps.core import Routed
from torchcaps.routing import FusedPath, Routing, RoutingCost, RoutingShape, UncastVotes, fused_path


class CoordinateAddition(nn.Module):
    """A routing that first adds the coordinates of each child to its votes (Hinton 2018, section 4.1).

    Args:
        routing: Routes the shifted votes.
        coordinates: Row and column of each child.
        components: The two vote components they are added to.
        pose: Components of a vote.
    """

    offset: Tensor

    def __init__(
        self,
        routing: Routing,
        coordinates: Float[Tensor, "in_caps 2"],
        components: tuple[int, int],
        *,
        pose: int = 16,
    ) -> None:
        super().__init__()
        self.routing = routing
        offset = torch.zeros(coordinates.shape[0], 1, pose)
        offset[:, 0, list(components)] = coordinates
        self.register_buffer("offset", offset, persistent=False)

    def forward(
        self,
        votes: Float[Tensor, "*where in_caps out_caps pose"],
        activations: Float[Tensor, "*where in_caps"],
    ) -> Routed:
        """Route the shifted `votes`."""
        return self.routing(votes + self.offset.to(votes.dtype), activations)

    def fuse(self, votes: UncastVotes, *, insist: bool) -> FusedPath:
        """The kernel of the routing inside, where that can add offsets to the votes."""
        if self.offset.device != votes.poses.device:  # a kernel would read what is not there
            return f"the coordinates are on {self.offset.device}, the poses on {votes.poses.device}"
        shifted = votes._replace(offsets=self.offset.squeeze(1))
        return fused_path(self.routing, shifted, insist=insist)

    def cost(self, shape: RoutingShape) -> RoutingCost:
        """The addition alone; the routing inside counts its own work."""
        return RoutingCost(0, shape.in_caps * shape.out_caps * shape.pose)
