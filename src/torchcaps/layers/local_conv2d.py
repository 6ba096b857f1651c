"""Locally-constrained capsules (LaLonde & Bagci 2018): child types vote by one shared convolution."""

from __future__ import annotations

from abc import abstractmethod
from functools import partial

import torch
from einops import rearrange
from torch import Tensor, nn
from torch.nn import functional as F

from torchcaps.core import Capsules, Routed, UserError
from torchcaps.routing import RoutingShape, RoutingSpec, StoredVotes, build_routing

from .geometry import pad_same, require_window
from .routed import Backend, RoutedCaps, recompute, require_capsules, require_grid, require_routed


class _LocalCaps2d(RoutedCaps[StoredVotes]):
    """The part that convolution and transposed convolution share: vote per child type, then route."""

    def __init__(
        self,
        types: tuple[int, int],
        poses: tuple[int, int],
        window: tuple[int, int],
        routing: RoutingSpec,
        *,
        checkpoint: bool,
        backend: Backend,
    ) -> None:
        require_window(*window)
        super().__init__(build_routing(routing, RoutingShape(*types, poses[1])), backend)
        self.kernel_size, self.stride = window
        self.in_types, self.out_types = types
        self.in_pose, self.out_pose = poses
        self.checkpoint = checkpoint

    @abstractmethod
    def _convolve(self, maps: Tensor, weight: Tensor) -> Tensor:
        """`maps` of (batch, channels, height, width) through a kernel of this layer's geometry."""

    @abstractmethod
    def _uniform_kernel(self) -> Tensor:
        """One channel to one channel, averaging what a position of the output sees."""

    def forward(self, children: Capsules, *, return_coupling: bool = True) -> Routed:
        """Vote and route at each position of the output map.

        Without `return_coupling` the couplings are None where the fused kernel runs.
        """
        fields = require_capsules(self, children)
        route = partial(self._vote_and_route, return_coupling)
        return recompute(route, *fields) if self.checkpoint and torch.is_grad_enabled() else route(*fields)

    def _vote_and_route(self, return_coupling: bool, poses: Tensor, activations: Tensor) -> Routed:
        return super().forward(Capsules(poses, activations), return_coupling=return_coupling)

    def _votes(self, children: Capsules, return_coupling: bool) -> StoredVotes:
        require_grid(self, children, self.in_types, self.in_pose)
        poses, activations = children
        maps = rearrange(poses, "b h w t d -> (b t) d h w")
        if maps.is_cuda:
            maps = maps.contiguous(memory_format=torch.channels_last)
        cast = self._convolve(maps, self.weight)
        votes = rearrange(cast, "(b t) (o d) h w -> b t h w o d", t=self.in_types, o=self.out_types)
        return StoredVotes(votes, activations, return_coupling, self.weight.dtype)

    def _route_plain(self, votes: StoredVotes) -> Routed:
        ordered, activations = self._ordered(votes)
        return require_routed(self.routing(ordered, activations), ordered)

    def _ordered(self, votes: StoredVotes) -> tuple[Tensor, Tensor]:
        # a vote pools a window of children: their mean activation stands for them
        lengths = rearrange(votes.activations, "b h w t -> (b t) 1 h w")
        pooled = self._convolve(lengths, self._uniform_kernel())
        return (
            rearrange(votes.votes, "b t h w o d -> b h w t o d").to(votes.dtype),
            rearrange(pooled, "(b t) 1 h w -> b h w t", t=self.in_types),
        )

    def cast(self, children: Capsules) -> tuple[Tensor, Tensor]:
        """What a plain routing gets: votes, which are linear in the poses, and activations of who casts them.

        Votes are (batch, height, width, in_types, out_types, pose).
        """
        return self._ordered(self._votes(require_capsules(self, children, self.weight.dtype), True))

    def extra_repr(self) -> str:
        """Sizes and backend."""
        return (
            f"in_types={self.in_types}, out_types={self.out_types}, in_pose={self.in_pose}, "
            f"out_pose={self.out_pose}, kernel_size={self.kernel_size}, stride={self.stride}, "
            f"checkpoint={self.checkpoint}, backend={self.backend!r}"
        )


class LocalConvCaps2d(_LocalCaps2d):
    """Parents whose votes come from a window, one vote per child type, with one kernel for all types.

    The map keeps its size, divided by `stride` and rounded up.

    Args:
        in_types: Capsule types of the layer below.
        out_types: Capsule types of this layer.
        in_pose: Dimensions of a child's pose.
        out_pose: Dimensions of a parent's pose.
        kernel_size: Side of the window.
        stride: Step of the window.
        routing: As in `FcCaps`; it splits a child type over the parent types of one position.
        checkpoint: Compute votes and routing again in the backward pass instead of storing them.
        backend: "fused" routes the votes in one kernel, otherwise as in `FcCaps`.
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
        routing: RoutingSpec = "dynamic",
        checkpoint: bool = False,
        backend: Backend = "auto",
    ) -> None:
        sizes = (in_types, out_types), (in_pose, out_pose), (kernel_size, stride)
        super().__init__(*sizes, routing, checkpoint=checkpoint, backend=backend)
        self.weight = nn.Parameter(torch.empty(out_types * out_pose, in_pose, kernel_size, kernel_size))
        nn.init.kaiming_normal_(self.weight)

    def _convolve(self, maps: Tensor, weight: Tensor) -> Tensor:
        if self.stride == 1 and self.kernel_size % 2:  # the same zeros on both sides, without a copy
            return F.conv2d(maps, weight, padding=self.kernel_size // 2)
        return F.conv2d(pad_same(maps, self.kernel_size, self.stride), weight, stride=self.stride)

    def _uniform_kernel(self) -> Tensor:
        return self.weight.new_full((1, 1, self.kernel_size, self.kernel_size), self.kernel_size**-2)


class LocalDeconvCaps2d(_LocalCaps2d):
    """The transposed twin of `LocalConvCaps2d`: the map grows by `stride`.

    Args:
        in_types: Capsule types of the layer below.
        out_types: Capsule types of this layer.
        in_pose: Dimensions of a child's pose.
        out_pose: Dimensions of a parent's pose.
        kernel_size: Side of the area that one child votes for; at least `stride`, and as even or odd.
        stride: Factor by which height and width grow.
        routing: As in `FcCaps`.
        checkpoint: As in `LocalConvCaps2d`.
        backend: As in `LocalConvCaps2d`.
    """

    def __init__(  # noqa: PLR0913  a convolution has this many sizes
        self,
        in_types: int,
        out_types: int,
        in_pose: int,
        out_pose: int,
        *,
        kernel_size: int = 4,
        stride: int = 2,
        routing: RoutingSpec = "dynamic",
        checkpoint: bool = False,
        backend: Backend = "auto",
    ) -> None:
        sizes = (in_types, out_types), (in_pose, out_pose), (kernel_size, stride)
        super().__init__(*sizes, routing, checkpoint=checkpoint, backend=backend)
        if kernel_size < stride or (kernel_size - stride) % 2:
            raise UserError(
                f"a transposed convolution grows a map by {stride} only with kernel {stride}, {stride + 2}, "
                f"{stride + 4}, ..., got {kernel_size}"
            )
        self.weight = nn.Parameter(torch.empty(in_pose, out_types * out_pose, kernel_size, kernel_size))
        nn.init.kaiming_normal_(self.weight)  # counts the outputs as fan-in, as the published code does

    def _convolve(self, maps: Tensor, weight: Tensor) -> Tensor:
        crop = (self.kernel_size - self.stride) // 2
        return F.conv_transpose2d(maps, weight, stride=self.stride, padding=crop)

    def _uniform_kernel(self) -> Tensor:
        share = (self.stride / self.kernel_size) ** 2
        return self.weight.new_full((1, 1, self.kernel_size, self.kernel_size), share)
