"""Convolutional capsules: a parent receives votes from the window below it."""

from __future__ import annotations

import torch
from einops import rearrange
from torch import Tensor, nn
from torch.nn import functional as F

from torchcaps.core import Capsules, UserError
from torchcaps.routing import RoutingShape, RoutingSpec, UncastVotes, build_routing

from .geometry import require_window
from .routed import Backend, VotingCaps, require_grid
from .vote import matrix_columns


class ConvCaps2d(VotingCaps):
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

    Examples:
        >>> from torchcaps.core import Capsules
        >>> poses = torch.rand(2, 6, 6, 8, 4)
        >>> routed = ConvCaps2d(8, 16, 4, 4, kernel_size=3, stride=2)(Capsules(poses, poses.norm(dim=-1)))
        >>> routed.poses.shape, routed.coupling.shape
        (torch.Size([2, 2, 2, 16, 4]), torch.Size([2, 2, 2, 72, 16]))
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
        require_window(kernel_size, stride, padding)
        window = kernel_size**2
        built = build_routing(routing, RoutingShape(window * in_types, out_types, out_pose))
        super().__init__(built, pose_rows=pose_rows, backend=backend)
        self.kernel_size, self.stride, self.padding = kernel_size, stride, padding
        self.in_types, self.in_pose = in_types, in_pose
        share_types = share_types or getattr(built, "shares_matrices", False)
        matrices = window if share_types else window * in_types
        columns = matrix_columns(in_pose, out_pose, pose_rows)
        self.weight = nn.Parameter(torch.randn(matrices, columns[0], out_types, columns[1]).mul_(init_std))

    def _votes(self, children: Capsules, return_coupling: bool) -> UncastVotes:
        require_grid(self, children, self.in_types, self.in_pose)
        poses, activations = children
        if min(poses.shape[1:3]) + 2 * self.padding < self.kernel_size:
            raise UserError(
                f"ConvCaps2d with kernel {self.kernel_size} leaves nothing of a "
                f"{poses.shape[1]}x{poses.shape[2]} map"
            )
        gathered = self._windows(poses), self._windows(activations.unsqueeze(-1)).squeeze(-1)
        return UncastVotes(*gathered, self.weight, return_coupling, self.pose_rows)

    def _windows(self, grid: Tensor) -> Tensor:
        padded = F.pad(grid, (0, 0, 0, 0, *[self.padding] * 4))
        windows = padded.unfold(1, self.kernel_size, self.stride).unfold(2, self.kernel_size, self.stride)
        return rearrange(windows, "b h w t d m n -> b h w (t m n) d")

    def extra_repr(self) -> str:
        """Sizes and backend."""
        matrices, _, out_types, out_columns = self.weight.shape
        return (
            f"in_types={self.in_types}, out_types={out_types}, in_pose={self.in_pose}, "
            f"out_pose={out_columns * self.pose_rows}, kernel_size={self.kernel_size}, stride={self.stride}, "
            f"padding={self.padding}, matrices={matrices}, pose_rows={self.pose_rows}, "
            f"backend={self.backend!r}"
        )
