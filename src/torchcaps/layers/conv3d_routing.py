"""Convolutional capsules routed over whole maps, their votes cast by a 3-D convolution (DeepCaps)."""

from __future__ import annotations

import torch
from einops import rearrange
from jaxtyping import Float
from torch import Tensor, einsum, nn

from torchcaps.core import Capsules, Routed, UserError, squash, without_autocast
from torchcaps.routing import (
    Gradient,
    RoutingCost,
    RoutingShape,
    keep_float32,
    length_cost,
    of_inner_rounds,
    require_gradient,
    require_iterations,
    softmax_cost,
    squash_cost,
)

from .geometry import require_window
from .routed import require_capsules, require_grid


@keep_float32
def map_routing(
    votes: Float[Tensor, "batch in_types positions out_types pose"],
    *,
    iterations: int = 3,
    gradient: Gradient = "full",
    squash_jointly: bool = True,
    bias: Float[Tensor, "out_types pose"] | None = None,
) -> Routed:
    """Routing by agreement where a child is the whole map of one type (Rajasegaran 2019, section 3.2).

    Args:
        votes: What each child type predicts for each parent type at each position.
        iterations: Rounds of agreement; 1 means an even split.
        gradient: As in `dynamic_routing`.
        squash_jointly: Shorten a parent type by its length over pose and positions together (the authors'
            code), instead of each capsule by its own.
        bias: Added to each parent's pooled votes in every round.

    Returns:
        Poses at (batch, positions, out_types), lengths as activations, and couplings at (batch, positions,
        in_types, out_types): those of one child sum to one over positions and parents together.
    """
    require_iterations(iterations)
    offset = votes.new_zeros(()) if bias is None else bias.to(votes.dtype)
    inner_votes, inner_offset = of_inner_rounds(votes, offset, gradient)
    logits = votes.new_zeros(votes.shape[:-1])
    for _ in range(iterations - 1):
        pooled = einsum("bixo,bixod->bxod", _split_over_maps(logits), inner_votes) + inner_offset
        logits = logits + einsum("bixod,bxod->bixo", inner_votes, _squash(pooled, squash_jointly))
    coupling = rearrange(_split_over_maps(logits), "b i x o -> b x i o")
    return pool_maps(votes, coupling=coupling, squash_jointly=squash_jointly, bias=bias)


@keep_float32
def pool_maps(
    votes: Float[Tensor, "batch in_types positions out_types pose"],
    *,
    coupling: Float[Tensor, "batch positions in_types out_types"],
    squash_jointly: bool = True,
    bias: Float[Tensor, "out_types pose"] | None = None,
) -> Routed:
    """The parents that given couplings make; arguments as in `map_routing`."""
    pooled = einsum("bxio,bixod->bxod", coupling.to(votes.dtype), votes)
    poses = _squash(pooled if bias is None else pooled + bias.to(votes.dtype), squash_jointly)
    return Routed(poses, torch.linalg.vector_norm(poses, dim=-1), coupling)


def _split_over_maps(logits: Tensor) -> Tensor:
    return logits.flatten(-2).softmax(-1).view(logits.shape)


def _in_one_axis(routed: Routed) -> Routed:
    """The parents of all positions in one axis, as a routing returns them."""
    poses, activations, coupling = routed
    return Routed(poses.flatten(1, 2), activations.flatten(1), rearrange(coupling, "b x i o -> b i (x o)"))


def _squash(pooled: Tensor, jointly: bool) -> Tensor:
    if not jointly:
        return squash(pooled)
    maps = squash(rearrange(pooled, "b x o d -> b o (x d)"))
    return rearrange(maps, "b o (x d) -> b x o d", x=pooled.shape[1])


class MapRouting(nn.Module):
    """`map_routing` with its settings and its learned bias; parents are ordered (position, type)."""

    def __init__(
        self,
        out_types: int,
        pose: int,
        *,
        iterations: int = 3,
        gradient: Gradient = "full",
        squash_jointly: bool = True,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.out_types = out_types
        self.iterations = require_iterations(iterations)
        self.gradient: Gradient = require_gradient(gradient)
        self.squash_jointly = squash_jointly
        self.bias = nn.Parameter(torch.full((out_types, pose), 0.1)) if bias else None

    def forward(
        self,
        votes: Float[Tensor, "batch in_types parents pose"],
        activations: Float[Tensor, "batch in_types"],
    ) -> Routed:
        """Route `votes`; the activations are not read."""
        del activations
        routed = map_routing(
            self._by_position(votes),
            iterations=self.iterations,
            gradient=self.gradient,
            squash_jointly=self.squash_jointly,
            bias=self.bias,
        )
        return _in_one_axis(routed)

    def read_out(
        self,
        votes: Float[Tensor, "batch in_types parents pose"],
        activations: Float[Tensor, "batch in_types"],
        coupling: Float[Tensor, "batch in_types parents"],
    ) -> Routed:
        """The parents that `coupling` makes, as after the last round."""
        del activations
        by_position = rearrange(coupling, "b i (x o) -> b x i o", o=self.out_types)
        routed = pool_maps(
            self._by_position(votes), coupling=by_position, squash_jointly=self.squash_jointly, bias=self.bias
        )
        return _in_one_axis(routed)

    def _by_position(self, votes: Tensor) -> Tensor:
        return rearrange(votes, "b i (x o) d -> b i x o d", o=self.out_types)

    def cost(self, shape: RoutingShape) -> RoutingCost:
        """Work on one sample, the parents of all positions counted."""
        in_types, parents, pose = shape
        rounds, out_types = self.iterations, self.out_types
        squashing = (
            out_types * squash_cost(parents // out_types * pose)
            if self.squash_jointly
            else parents * squash_cost(pose)
        )
        bias = 0 if self.bias is None else parents * pose
        elementwise = rounds * (in_types * softmax_cost(parents) + bias + squashing)
        elementwise += (rounds - 1) * in_types * parents + parents * length_cost(pose)
        return RoutingCost((2 * rounds - 1) * in_types * parents * pose, elementwise)


class Conv3dRoutingCaps(nn.Module):
    """Parents at each position of the children's map, all child types voting through one 3-D kernel.

    The kernel steps over the axis of (type, pose): each step covers one child type and a square of positions,
    so that `depth * kernel_size**2 * out_types * out_pose` weights serve any number of child types.

    Args:
        in_types: Capsule types of the layer below.
        out_types: Capsule types of this layer.
        in_pose: Dimensions of a child's pose.
        out_pose: Dimensions of a parent's pose.
        kernel_size: Side of the square, odd; the map keeps its size.
        depth_kernel: How many components of each pose the kernel covers, from the first. By default
            `in_pose`, all of them (the thesis used 3).
        conv_bias: Whether the convolution has a bias beside the one of the routing.
        routing_bias: Whether the routing has one.
        iterations: As in `map_routing`.
        gradient: As in `map_routing`.
        squash_jointly: As in `map_routing`.
    """

    def __init__(  # noqa: PLR0913  a convolution has this many sizes
        self,
        in_types: int,
        out_types: int,
        in_pose: int,
        out_pose: int,
        *,
        kernel_size: int = 3,
        depth_kernel: int | None = None,
        conv_bias: bool = False,
        routing_bias: bool = True,
        iterations: int = 3,
        gradient: Gradient = "full",
        squash_jointly: bool = True,
    ) -> None:
        super().__init__()
        require_window(kernel_size)
        if kernel_size % 2 == 0:
            raise UserError(f"kernel_size must be odd, so that the map keeps its size, got {kernel_size}")
        depth = in_pose if depth_kernel is None else depth_kernel
        if not 1 <= depth <= in_pose:
            raise UserError(f"depth_kernel must be between 1 and {in_pose}, the pose, got {depth}")
        self.in_types, self.in_pose, self.out_types = in_types, in_pose, out_types
        self.conv = nn.Conv3d(
            1,
            out_types * out_pose,
            (depth, kernel_size, kernel_size),
            stride=(in_pose, 1, 1),
            padding=(0, kernel_size // 2, kernel_size // 2),
            bias=conv_bias,
        )
        self.routing = MapRouting(
            out_types,
            out_pose,
            iterations=iterations,
            gradient=gradient,
            squash_jointly=squash_jointly,
            bias=routing_bias,
        )

    def forward(self, children: Capsules) -> Routed:
        """Vote and route; couplings at one position do not sum to one, those of all positions do."""
        poses, activations = require_capsules(self, children)
        require_grid(self, children, self.in_types, self.in_pose)
        height, width = poses.shape[1:3]
        cast = self.conv(rearrange(poses, "b h w t d -> b 1 (t d) h w"))
        votes = rearrange(cast, "b (o d) t h w -> b t (h w o) d", o=self.out_types)
        dtype = self.conv.weight.dtype
        with without_autocast(votes):
            # a child is the map of a type: its mean activation stands for it
            routed: Routed = self.routing(votes.to(dtype), activations.mean((1, 2)).to(dtype))
        at = {"h": height, "w": width}
        return Routed(
            rearrange(routed.poses, "b (h w o) d -> b h w o d", **at),
            rearrange(routed.activations, "b (h w o) -> b h w o", **at),
            rearrange(routed.coupling, "b i (h w o) -> b h w i o", **at),
        )
