"""Fully connected capsules in which only some children vote: what pruning leaves of `FcCaps`."""

from __future__ import annotations

import torch
from torch import Tensor

from torchcaps.core import Capsules, Routed, UserError
from torchcaps.routing import RoutingSpec, UncastVotes

from .fc import FcCaps, flatten_grid


class SelectedFcCaps(FcCaps):
    """`FcCaps` without the matrices of children that vote zero for every parent.

    The couplings of such a child are the same for every image. They are kept beside the matrices, so that the
    couplings returned are still those of all children, in the order of the grid below.

    Args:
        in_caps: Children in all.
        out_caps: Parents.
        in_pose: Dimensions of a child's pose.
        out_pose: Dimensions of a parent's pose.
        voters: How many children have a vote; which they are is in the buffer of that name.
        routing: As in `FcCaps`.
    """

    voters: Tensor
    silent_coupling: Tensor

    def __init__(
        self,
        in_caps: int,
        out_caps: int,
        in_pose: int,
        out_pose: int,
        *,
        voters: int,
        routing: RoutingSpec = "dynamic",
    ) -> None:
        if not 1 <= voters <= in_caps:
            raise UserError(f"of {in_caps} children between 1 and all can vote, not {voters}")
        super().__init__(voters, out_caps, in_pose, out_pose, routing=routing)
        self.grid_caps = in_caps
        self.register_buffer("voters", torch.arange(voters))
        self.register_buffer("silent_coupling", torch.full((in_caps, out_caps), 1 / out_caps))

    def _votes(self, children: Capsules, return_coupling: bool) -> UncastVotes:
        flat = flatten_grid(children)
        if flat.poses.shape[1] != self.grid_caps:
            raise UserError(f"expected {self.grid_caps} children, got {flat.poses.shape[1]}")
        voting = Capsules(*(field.index_select(1, self.voters) for field in flat))
        return super()._votes(voting, return_coupling)

    def forward(self, children: Capsules, *, return_coupling: bool = True) -> Routed:
        """Vote and route as `FcCaps` does; the couplings are those of all children."""
        routed = super().forward(children, return_coupling=return_coupling)
        if routed.coupling is None:
            return routed
        batch = routed.coupling.shape[0]  # not len(), which would fix the batch of an export
        silent = self.silent_coupling.to(routed.coupling.dtype).expand(batch, -1, -1)
        return routed._replace(coupling=silent.index_copy(1, self.voters, routed.coupling))


def build_fc_caps(
    in_caps: int,
    out_caps: int,
    in_pose: int,
    out_pose: int,
    *,
    routing: RoutingSpec,
    voters: int = 0,
) -> FcCaps:
    """The layer in which all children vote, or `voters` of them."""
    sizes = (in_caps, out_caps, in_pose, out_pose)
    if voters:
        return SelectedFcCaps(*sizes, voters=voters, routing=routing)
    return FcCaps(*sizes, routing=routing)
