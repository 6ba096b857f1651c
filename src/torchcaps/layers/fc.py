"""Fully connected capsules: every child votes for every parent."""

from __future__ import annotations

import torch
from torch import nn

from torchcaps.core import Capsules, UserError
from torchcaps.routing import RoutingShape, RoutingSpec, UncastVotes, build_routing

from .routed import Backend, VotingCaps
from .vote import matrix_columns


def flatten_grid(capsules: Capsules) -> Capsules:
    """All capsules of a sample in one axis, in the order (height, width, type)."""
    return Capsules(capsules.poses.flatten(1, -2), capsules.activations.flatten(1))


class FcCaps(VotingCaps):
    """Parents that receive a vote from each capsule of the layer below, wherever it stands.

    Args:
        in_caps: Children in all.
        out_caps: Parents.
        in_pose: Dimensions of a child's pose.
        out_pose: Dimensions of a parent's pose.
        routing: Name, `{"name": ..., setting: value}`, or any callable of votes and activations.
        matrices: How many sets of matrices the children share: `in_caps` (default) gives each its own, the
            number of types shares them over positions, 1 over all children (the default of a routing that
            shares matrices).
        pose_rows: Rows of a pose that is a matrix; a vote is then a matrix product, with
            `in_pose * out_pose / pose_rows**2` weights a pair.
        init_std: Standard deviation of the initial matrices; with 1 instead of 0.1 dynamic routing does not
            start to learn.
        backend: "fused" votes and routes in one kernel that never stores the votes, "torch" is the plain
            reference, "auto" is the kernel wherever `fallback_reason` finds nothing against it.

    Examples:
        >>> from torchcaps.core import Capsules
        >>> poses = torch.rand(2, 288, 4)
        >>> routed = FcCaps(288, 10, 4, 16)(Capsules(poses, poses.norm(dim=-1)))
        >>> routed.poses.shape, routed.coupling.shape
        (torch.Size([2, 10, 16]), torch.Size([2, 288, 10]))
    """

    def __init__(  # noqa: PLR0913  it has four sizes and three ways to share and split
        self,
        in_caps: int,
        out_caps: int,
        in_pose: int,
        out_pose: int,
        *,
        routing: RoutingSpec = "dynamic",
        matrices: int | None = None,
        pose_rows: int = 1,
        init_std: float = 0.1,
        backend: Backend = "auto",
    ) -> None:
        built = build_routing(routing, RoutingShape(in_caps, out_caps, out_pose))
        super().__init__(built, pose_rows=pose_rows, backend=backend)
        if matrices is None:
            matrices = 1 if getattr(built, "shares_matrices", False) else in_caps
        if matrices < 1 or in_caps % matrices:
            raise UserError(f"{in_caps} children cannot share {matrices} matrices evenly")
        self.in_caps, self.in_pose = in_caps, in_pose
        columns = matrix_columns(in_pose, out_pose, pose_rows)
        self.weight = nn.Parameter(torch.randn(matrices, columns[0], out_caps, columns[1]).mul_(init_std))

    def _votes(self, children: Capsules, return_coupling: bool) -> UncastVotes:
        flat = flatten_grid(children)
        found = flat.poses.shape[1:]
        if found != (self.in_caps, self.in_pose):
            raise UserError(
                f"FcCaps expects {self.in_caps} children of {self.in_pose} dimensions, got "
                f"{found[0]} of {found[1]}: is the image size the one the model was built for?"
            )
        return UncastVotes(*flat, self.weight, return_coupling, self.pose_rows)

    def extra_repr(self) -> str:
        """Sizes and backend."""
        matrices, _, out_caps, out_columns = self.weight.shape
        return (
            f"in_caps={self.in_caps}, out_caps={out_caps}, in_pose={self.in_pose}, "
            f"out_pose={out_columns * self.pose_rows}, matrices={matrices}, pose_rows={self.pose_rows}, "
            f"backend={self.backend!r}"
        )
