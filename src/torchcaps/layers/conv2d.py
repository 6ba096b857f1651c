"""Convolutional capsules: a parent receives votes from the window below it."""

from __future__ import annotations

from functools import partial

import torch
from einops import rearrange
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint as recompute

from torchcaps.core.errors import UserError
from torchcaps.core.precision import without_autocast
from torchcaps.core.types import Capsules, Routed
from torchcaps.kernels import em_unsupported_reason, fused_dynamic_routing, slower_reason, unsupported_reason
from torchcaps.routing.api import RoutingShape, RoutingSpec, build_routing
from torchcaps.routing.dynamic import DynamicRouting

from .backend import Backend, checked_backend, reason_of_routing, takes_kernel
from .em_conv2d import PositionalEM
from .vote import cast_votes, matrix_columns

_SAMPLES_AT_ONCE = 8  # EM on a CPU: 128 samples took 10 GB and nearly three times as long


class ConvCaps2d(nn.Module):
    """Parents of `out_types` types at each position, fed by a square window of children.

    The children of one parent are ordered (type, row, column). Children outside the map are zero poses with
    activation zero.

    Args:
        in_types: Capsule types of the layer below.
        out_types: Capsule types of this layer.
        in_pose: Dimensions of a child's pose.
        out_pose: Dimensions of a parent's pose.
        kernel_size: Side of the window.
        stride: Step of the window.
        padding: Rows and columns of absent children added on each side.
        routing: As in `FcCaps`.
        share_types: All child types use the same matrices, as they do under a routing that shares matrices.
        pose_rows: Rows of a pose that is a matrix; a vote is then a matrix product, with
            `in_pose * out_pose / pose_rows**2` weights a pair.
        init_std: Standard deviation of the initial matrices.
        backend: As in `FcCaps`.
    """

    def __init__(  # noqa: PLR0913  a convolution has this many sizes
        self,
        in_types: int,
        out_types: int,
        in_pose: int,
        out_pose: int,
        *,
        kernel_size: int,
        stride: int = 1,
        padding: int = 0,
        routing: RoutingSpec = "dynamic",
        share_types: bool = False,
        pose_rows: int = 1,
        init_std: float = 0.1,
        backend: Backend = "auto",
    ) -> None:
        super().__init__()
        self.backend: Backend = checked_backend(backend)
        self.kernel_size, self.stride, self.padding = kernel_size, stride, padding
        self.in_types, self.in_pose, self.pose_rows = in_types, in_pose, pose_rows
        window = kernel_size**2
        self.routing = build_routing(routing, RoutingShape(window * in_types, out_types, out_pose))
        share_types = share_types or getattr(self.routing, "shares_matrices", False)
        matrices = window if share_types else window * in_types
        columns = matrix_columns(in_pose, out_pose, pose_rows)
        self.weight = nn.Parameter(torch.randn(matrices, columns[0], out_types, columns[1]) * init_std)

    def forward(self, children: Capsules, *, return_coupling: bool = True) -> Routed:
        """Vote and route at each position of the output map.

        Without `return_coupling` the couplings are None where the fused kernel runs.
        """
        if children.poses.shape[-2:] != (self.in_types, self.in_pose):
            raise UserError(
                f"ConvCaps2d expects {self.in_types} types of {self.in_pose} dimensions, got "
                f"{children.poses.shape[-2]} of {children.poses.shape[-1]}"
            )
        if min(children.poses.shape[1:3]) + 2 * self.padding < self.kernel_size:
            raise UserError(
                f"ConvCaps2d with kernel {self.kernel_size} leaves nothing of a "
                f"{children.poses.shape[1]}x{children.poses.shape[2]} map"
            )
        with without_autocast(children.poses):
            poses = self._windows(children.poses.to(self.weight.dtype))
            activations = self._windows(children.activations.to(self.weight.dtype).unsqueeze(-1)).squeeze(-1)
            # asked for by name, the kernel runs even where it only costs time
            ask = self._obstacle if self.backend == "fused" else self.fallback_reason
            if takes_kernel(self.backend, partial(ask, children, return_coupling=return_coupling)):
                return self._route_fused(poses, activations)
            if self._routes_in_parts(poses):
                return self._route_in_parts(poses, activations)
            return self._vote_and_route(poses, activations)

    def _vote_and_route(self, poses: Tensor, activations: Tensor) -> Routed:
        routed: Routed = self.routing(cast_votes(poses, self.weight, self.pose_rows), activations)
        return routed

    def _routes_in_parts(self, poses: Tensor) -> bool:
        """Whether this is EM routing that learns on a CPU, where the votes of a batch take gigabytes."""
        is_learning = torch.is_grad_enabled() and self.weight.requires_grad
        is_plain_cpu = poses.device.type == "cpu" and not torch.compiler.is_compiling()
        is_em = isinstance(self.routing, PositionalEM)
        return is_em and is_learning and is_plain_cpu and len(poses) > _SAMPLES_AT_ONCE

    def _route_in_parts(self, poses: Tensor, activations: Tensor) -> Routed:
        """A few samples at a time, whose votes the backward pass computes again; nothing is random here."""
        parts = zip(*(torch.split(values, _SAMPLES_AT_ONCE) for values in (poses, activations)), strict=True)
        routed = [
            recompute(self._vote_and_route, *part, use_reentrant=False, preserve_rng_state=False)
            for part in parts
        ]
        return Routed(*(torch.cat(fields) for fields in zip(*routed, strict=True)))

    def fallback_reason(self, children: Capsules, *, return_coupling: bool = True) -> str | None:
        """Why "auto" would take the plain path for these children; None where it does not."""
        obstacle = self._obstacle(children, return_coupling=return_coupling)
        return obstacle or slower_reason(self._like_windows(children).flatten(0, 2), self.weight)

    def _obstacle(self, children: Capsules, *, return_coupling: bool) -> str | None:
        if reason := reason_of_routing(self.routing, DynamicRouting, PositionalEM):
            return reason
        if return_coupling:
            return "the couplings were asked for, which only the plain path gives"
        windows = self._like_windows(children)
        if isinstance(self.routing, PositionalEM):
            return em_unsupported_reason(windows, self.weight)
        if self.pose_rows != 1:
            return "there is no fused kernel of dynamic routing for poses that are matrices"
        return unsupported_reason(windows.flatten(0, 2), self.weight)

    def _like_windows(self, children: Capsules) -> Tensor:
        """A single number in the shape of the poses that windows see."""
        batch, *sides = children.poses.shape[:3]
        rows, columns = ((side + 2 * self.padding - self.kernel_size) // self.stride + 1 for side in sides)
        children_of_one = self.kernel_size**2 * self.in_types
        return self.weight.new_empty(()).expand(batch, rows, columns, children_of_one, self.in_pose)

    def _route_fused(self, poses: Tensor, activations: Tensor) -> Routed:
        routing = self.routing
        if isinstance(routing, PositionalEM):
            return routing.route_fused(poses, activations, self.weight)
        assert isinstance(routing, DynamicRouting)
        routed = fused_dynamic_routing(
            poses.flatten(0, 2),
            self.weight,
            routing.bias,
            iterations=routing.iterations,
            gradient=routing.gradient,
            leaky=routing.leaky,
        ).view(*poses.shape[:3], *self.weight.shape[2:])
        return Routed(routed, torch.linalg.vector_norm(routed, dim=-1), None)

    def _windows(self, grid: Tensor) -> Tensor:
        padded = F.pad(grid, (0, 0, 0, 0, *[self.padding] * 4))
        windows = padded.unfold(1, self.kernel_size, self.stride).unfold(2, self.kernel_size, self.stride)
        return rearrange(windows, "b h w t d m n -> b h w (t m n) d")
