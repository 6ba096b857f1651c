"""Fully connected capsules: every child votes for every parent."""

from __future__ import annotations

import torch
from torch import nn

from torchcaps.core.errors import UserError
from torchcaps.core.types import Capsules, Routed
from torchcaps.routing.api import RoutingShape, RoutingSpec, build_routing

from .vote import cast_votes


def flatten_grid(capsules: Capsules) -> Capsules:
    """All capsules of a sample in one axis, in the order (height, width, type)."""
    return Capsules(capsules.poses.flatten(1, -2), capsules.activations.flatten(1))


class FcCaps(nn.Module):
    """Parents that receive a vote from each capsule of the layer below, wherever it stands.

    Args:
        in_caps: Children in all.
        out_caps: Parents.
        in_pose: Dimensions of a child's pose.
        out_pose: Dimensions of a parent's pose.
        routing: Name, `{"name": ..., setting: value}`, or any callable of votes and activations.
        matrices: How many sets of matrices the children share: `in_caps` (default) gives each its own, the
            number of types shares them over positions, 1 over all children.
        init_std: Standard deviation of the initial matrices; with 1 instead of 0.1 training does not start.
    """

    def __init__(
        self,
        in_caps: int,
        out_caps: int,
        in_pose: int,
        out_pose: int,
        *,
        routing: RoutingSpec = "dynamic",
        matrices: int | None = None,
        init_std: float = 0.1,
    ) -> None:
        super().__init__()
        matrices = in_caps if matrices is None else matrices
        if matrices < 1 or in_caps % matrices:
            raise UserError(f"{in_caps} children cannot share {matrices} matrices evenly")
        self.in_caps, self.in_pose = in_caps, in_pose
        self.weight = nn.Parameter(torch.randn(matrices, in_pose, out_caps, out_pose) * init_std)
        self.routing = build_routing(routing, RoutingShape(in_caps, out_caps, out_pose))

    def forward(self, children: Capsules) -> Routed:
        """Vote and route; a grid of children is flattened first."""
        poses, activations = flatten_grid(children)
        if poses.shape[1:] != (self.in_caps, self.in_pose):
            raise UserError(
                f"FcCaps expects {self.in_caps} children of {self.in_pose} dimensions, got "
                f"{poses.shape[1]} of {poses.shape[2]}: is the image size the one the model was built for?"
            )
        with torch.autocast(poses.device.type, enabled=False):
            votes = cast_votes(poses.to(self.weight.dtype), self.weight)
            return self.routing(votes, activations.to(votes.dtype))
