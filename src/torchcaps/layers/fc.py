"""Fully connected capsules: every child votes for every parent."""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor, nn

from torchcaps.core.errors import UserError
from torchcaps.core.precision import without_autocast
from torchcaps.core.types import Capsules, Routed
from torchcaps.kernels import (
    EMScales,
    em_unsupported_reason,
    fused_dynamic_coupling,
    fused_dynamic_routing,
    fused_em_routing,
    fused_scaled_distance_routing,
    scaled_distance_unsupported_reason,
    slower_reason,
    unsupported_reason,
)
from torchcaps.routing.api import RoutingShape, RoutingSpec, build_routing
from torchcaps.routing.dynamic import DynamicRouting
from torchcaps.routing.em import EMRouting
from torchcaps.routing.scaled_distance import ScaledDistanceRouting, sharpness

from .backend import Backend, checked_backend, is_watched, reason_of_routing, takes_kernel
from .coordinates import CoordinateAddition
from .vote import cast_votes, matrix_columns

_VOTES_AT_ONCE = 1 << 21  # numbers: 8 MB, of which a handful of copies take half the time of larger ones


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
            number of types shares them over positions, 1 over all children (the default of a routing that
            shares matrices).
        pose_rows: Rows of a pose that is a matrix; a vote is then a matrix product, with
            `in_pose * out_pose / pose_rows**2` weights a pair.
        init_std: Standard deviation of the initial matrices; with 1 instead of 0.1 training does not start.
        backend: "fused" votes and routes in one kernel that never stores the votes, "torch" is the plain
            reference, "auto" is the kernel wherever `fallback_reason` finds nothing against it.
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
        super().__init__()
        self.backend: Backend = checked_backend(backend)
        self.routing = build_routing(routing, RoutingShape(in_caps, out_caps, out_pose))
        if matrices is None:
            matrices = 1 if getattr(self.routing, "shares_matrices", False) else in_caps
        if matrices < 1 or in_caps % matrices:
            raise UserError(f"{in_caps} children cannot share {matrices} matrices evenly")
        self.in_caps, self.in_pose, self.pose_rows = in_caps, in_pose, pose_rows
        columns = matrix_columns(in_pose, out_pose, pose_rows)
        self.weight = nn.Parameter(torch.randn(matrices, columns[0], out_caps, columns[1]) * init_std)

    def forward(self, children: Capsules, *, return_coupling: bool = True) -> Routed:
        """Vote and route; a grid of children is flattened first.

        Without `return_coupling` the couplings are None where the fused kernel runs.
        """
        children = self._checked(flatten_grid(children))
        with without_autocast(children.poses):
            # asked for by name, the kernel runs even where it only costs time
            ask = self._obstacle if self.backend == "fused" else self.fallback_reason
            if takes_kernel(self.backend, partial(ask, children, return_coupling=return_coupling)):
                return self._route_fused(children, return_coupling)
            at_once = self._samples_at_once(children.poses)
            if at_once is None:
                return self._vote_and_route(*children)
            parts = zip(*(torch.split(field, at_once) for field in children), strict=True)
            routed = [self._vote_and_route(*part) for part in parts]
            return Routed(*(torch.cat(fields) for fields in zip(*routed, strict=True)))

    def _vote_and_route(self, poses: Tensor, activations: Tensor) -> Routed:
        routed: Routed = self.routing(cast_votes(poses, self.weight, self.pose_rows), activations)
        return routed

    def _samples_at_once(self, poses: Tensor) -> int | None:
        """As many as scaled-distance routing on a CPU compares while its cache holds them; None is all."""
        routing = self.routing
        if poses.device.type != "cpu" or torch.compiler.is_compiling():  # an export leaves the batch open
            return None
        if type(routing) is not ScaledDistanceRouting or routing.scope == "batch":
            return None
        if is_watched(routing):  # hooks watch or change the whole batch
            return None
        votes_of_one = self.in_caps * self.weight.shape[2] * self.weight.shape[3] * self.pose_rows
        at_once = max(1, _VOTES_AT_ONCE // votes_of_one)
        return at_once if at_once < len(poses) else None

    def fallback_reason(self, children: Capsules, *, return_coupling: bool = True) -> str | None:
        """Why "auto" would take the plain path for these children; None where it does not."""
        poses = flatten_grid(children).poses
        obstacle = self._obstacle(children, return_coupling=return_coupling)
        return obstacle or slower_reason(poses, self.weight)

    def _obstacle(self, children: Capsules, *, return_coupling: bool) -> str | None:
        em = self._em_and_offsets()
        if em is not None:
            return self._em_obstacle(em[0], children, return_coupling)
        routing = self.routing
        if reason := reason_of_routing(routing, DynamicRouting, ScaledDistanceRouting):
            return reason
        if self.pose_rows != 1:
            return "the fused kernels of this routing do not take poses that are matrices"
        learning = (*self.parameters(), *children)
        if return_coupling and torch.is_grad_enabled() and any(each.requires_grad for each in learning):
            return (
                "the couplings were asked for together with gradients, which only the plain path gives them"
            )
        poses = flatten_grid(children).poses
        if not isinstance(routing, ScaledDistanceRouting):
            return unsupported_reason(poses, self.weight)
        if routing.scope == "batch":
            return "only the plain path takes the mean distance over the whole batch"
        return scaled_distance_unsupported_reason(poses, self.weight)

    def _em_obstacle(self, routing: EMRouting, children: Capsules, return_coupling: bool) -> str | None:
        for part in (self.routing, routing):  # the same, or one inside the other
            if reason := reason_of_routing(part, EMRouting, CoordinateAddition):
                return reason
        if return_coupling:
            return "the couplings were asked for, which only the plain path gives"
        poses = flatten_grid(children).poses[:, None, None]
        return em_unsupported_reason(poses, self.weight)

    def _em_and_offsets(self) -> tuple[EMRouting, Tensor | None] | None:
        """EM routing, with what is added to the votes before it; None for another routing."""
        routing = self.routing
        if isinstance(routing, EMRouting):
            return routing, None
        if isinstance(routing, CoordinateAddition) and isinstance(routing.routing, EMRouting):
            return routing.routing, routing.offset.squeeze(1)
        return None

    def _checked(self, children: Capsules) -> Capsules:
        poses, activations = children
        if poses.shape[1:] != (self.in_caps, self.in_pose):
            raise UserError(
                f"FcCaps expects {self.in_caps} children of {self.in_pose} dimensions, got "
                f"{poses.shape[1]} of {poses.shape[2]}: is the image size the one the model was built for?"
            )
        return Capsules(poses.to(self.weight.dtype), activations.to(self.weight.dtype))

    def _route_fused(self, children: Capsules, return_coupling: bool) -> Routed:
        em = self._em_and_offsets()
        if em is not None:
            return self._route_em(children, *em)
        routing = self.routing
        if isinstance(routing, ScaledDistanceRouting):
            return self._route_by_distance(children, routing, return_coupling)
        assert isinstance(routing, DynamicRouting)
        inputs = (children.poses, self.weight, routing.bias)
        iterations, leaky = routing.iterations, routing.leaky
        routed = fused_dynamic_routing(*inputs, iterations=iterations, gradient=routing.gradient, leaky=leaky)
        coupling = (
            fused_dynamic_coupling(*inputs, iterations=iterations, leaky=leaky) if return_coupling else None
        )
        return Routed(routed, torch.linalg.vector_norm(routed, dim=-1), coupling)

    def _route_by_distance(
        self, children: Capsules, routing: ScaledDistanceRouting, return_coupling: bool
    ) -> Routed:
        routed, coupling = fused_scaled_distance_routing(
            *children,
            self.weight,
            routing.bias,
            iterations=routing.iterations,
            sharpness=sharpness(self.weight.shape[2]),
            return_coupling=return_coupling,
        )
        return Routed(routed, torch.linalg.vector_norm(routed, dim=-1), coupling)

    def _route_em(self, children: Capsules, routing: EMRouting, offsets: Tensor | None) -> Routed:
        even_mass = self.in_caps / self.weight.shape[2]
        poses, activations = fused_em_routing(
            children.poses[:, None, None],
            children.activations[:, None, None],
            self.weight,
            costs=(routing.activation_cost, routing.vote_cost),
            window=(1, 1),
            scales=EMScales(routing.iterations, routing.inverse_temperature, routing.min_variance, even_mass),
            offsets=offsets,
        )
        return Routed(poses[:, 0, 0], activations[:, 0, 0], None)
