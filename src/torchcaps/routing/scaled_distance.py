"""Scaled-distance agreement (gamma-CapsNet; Peer, Stabinger & Rodriguez-Sanchez 2019)."""

from __future__ import annotations

import math
from functools import partial
from typing import Literal, get_args

import torch
from jaxtyping import Float
from torch import Tensor, einsum, nn

from torchcaps.core import Routed, UserError, require_choice, squash
from torchcaps.kernels import (
    DistanceSettings,
    fused_scaled_distance_routing,
    scaled_distance_unsupported_reason,
)

from .api import ROUTINGS, RoutingShape, keep_float32, require_iterations, require_sizes, say_settings
from .cost import RoutingCost, length_cost, softmax_cost, squash_cost
from .dynamic import even_split, of_inner_rounds, pool_votes
from .fused import FusedPath, Parts, UncastVotes, is_watched, vector_obstacle

Scope = Literal["sample", "batch"]
DistanceGradient = Literal["full", "last"]
_CONFIDENCE = 0.9  # coupling of a parent at half the mean distance, all others being at the mean
_VOTES_AT_ONCE = 1 << 21  # numbers: 8 MB; a whole batch at once is slower (scaled-distance--cpu.json)


def _require_rivals(out_caps: int) -> None:
    if out_caps < 2:
        raise UserError(
            f"scaled-distance routing needs at least 2 output capsules, got {out_caps}: "
            "they compete by distance"
        )


def sharpness(out_caps: int) -> float:
    """How much the logit of a parent at half the mean distance exceeds that of one at the mean."""
    return math.log(_CONFIDENCE * (out_caps - 1)) - math.log(1 - _CONFIDENCE)


def limit_votes(
    votes: Float[Tensor, "*where in_caps out_caps pose"], activations: Float[Tensor, "*where in_caps"]
) -> Float[Tensor, "*where in_caps out_caps pose"]:
    """Votes no longer than the activation of the child that casts them."""
    length = (votes.square().sum(-1, keepdim=True) + 1e-12).sqrt()
    return votes * (activations[..., None, None] / length).clamp(max=1)


@keep_float32
def pool_limited_votes(
    votes: Float[Tensor, "*where in_caps out_caps pose"],
    activations: Float[Tensor, "*where in_caps"],
    *,
    coupling: Float[Tensor, "*where in_caps out_caps"],
    bias: Float[Tensor, "out_caps pose"] | None = None,
) -> Routed:
    """`pool_votes` of votes that are limited first."""
    return pool_votes(limit_votes(votes, activations), activations, coupling=coupling, bias=bias)


@keep_float32
def scaled_distance_routing(
    votes: Float[Tensor, "*where in_caps out_caps pose"],
    activations: Float[Tensor, "*where in_caps"],
    *,
    iterations: int = 3,
    scope: Scope = "sample",
    gradient: DistanceGradient = "full",
    bias: Float[Tensor, "out_caps pose"] | None = None,
) -> Routed:
    """Route votes to the output capsules they are close to.

    Logits are assigned in each round, not accumulated. The scale of the distances carries no gradient.

    Args:
        votes: One pose prediction per (input, output) pair; limited to the length of their child first.
        activations: Lengths of the children.
        iterations: Rounds of agreement; 1 means an even split.
        scope: Where the mean distance is taken: in each sample, or over the whole tensor as in the authors'
            code, which makes an image's result depend on its neighbours in the batch.
        gradient: "full" differentiates all rounds; "last" holds the couplings constant (the thesis's code).
        bias: Added to each parent's pooled votes in every round.

    Returns:
        Output poses, their lengths as activations, and the couplings of the last round.
    """
    require_iterations(iterations)
    require_choice("scope", scope, get_args(Scope))
    require_choice("gradient", gradient, get_args(DistanceGradient))
    _require_rivals(votes.shape[-2])
    offset = votes.new_zeros(()) if bias is None else bias.to(votes.dtype)
    votes = limit_votes(votes, activations)
    inner_votes, inner_offset = of_inner_rounds(votes, offset, gradient)
    steepness = sharpness(votes.shape[-2])
    axes = None if scope == "batch" else (-2, -1)
    coupling = even_split(votes)
    for _ in range(iterations - 1):
        poses = squash(einsum("...io,...iod->...od", coupling, inner_votes) + inner_offset)
        distance = torch.linalg.vector_norm(poses.unsqueeze(-3) - inner_votes, dim=-1)
        mean = distance.detach().mean(axes, keepdim=True)
        coupling = (distance * (-steepness / (0.5 * mean + 1e-12))).softmax(dim=-1)
    return pool_votes(votes, activations, coupling=coupling, bias=bias)


@ROUTINGS.register("scaled_distance")
class ScaledDistanceRouting(nn.Module):
    """`scaled_distance_routing` with its settings and its learned bias."""

    extra_repr = say_settings

    def __init__(
        self,
        shape: RoutingShape,
        *,
        iterations: int = 3,
        scope: Scope = "sample",
        gradient: DistanceGradient = "full",
        bias: bool = True,
    ) -> None:
        super().__init__()
        _require_rivals(shape.out_caps)
        self.iterations = require_iterations(iterations)
        self.scope: Scope = require_choice("scope", scope, get_args(Scope))
        self.gradient: DistanceGradient = require_choice("gradient", gradient, get_args(DistanceGradient))
        self.bias = nn.Parameter(torch.full((shape.out_caps, shape.pose), 0.1)) if bias else None

    def forward(
        self,
        votes: Float[Tensor, "*where in_caps out_caps pose"],
        activations: Float[Tensor, "*where in_caps"],
    ) -> Routed:
        """Route `votes`."""
        require_sizes(self.bias, votes.shape[-2:])
        return scaled_distance_routing(
            votes,
            activations,
            iterations=self.iterations,
            scope=self.scope,
            gradient=self.gradient,
            bias=self.bias,
        )

    def read_out(
        self,
        votes: Float[Tensor, "*where in_caps out_caps pose"],
        activations: Float[Tensor, "*where in_caps"],
        coupling: Float[Tensor, "*where in_caps out_caps"],
    ) -> Routed:
        """The parents that `coupling` makes, as after the last round."""
        return pool_limited_votes(votes, activations, coupling=coupling, bias=self.bias)

    def summands(
        self,
        votes: Float[Tensor, "*where in_caps out_caps pose"],
        activations: Float[Tensor, "*where in_caps"],
        coupling: Float[Tensor, "*where in_caps out_caps"],
    ) -> Float[Tensor, "*where in_caps out_caps pose"]:
        """Limited votes times couplings."""
        return coupling.unsqueeze(-1) * limit_votes(votes, activations)

    def fuse(self, votes: UncastVotes, *, insist: bool) -> FusedPath:
        """A kernel for CUDA; couplings come without gradients."""
        del insist  # it is always faster
        poses = votes.poses.flatten(0, -3)
        return (
            vector_obstacle(votes, self.parameters())
            or scaled_distance_unsupported_reason(poses, votes.weight)
            or partial(self._route_fused, poses, votes)
        )

    def _route_fused(self, poses: Tensor, votes: UncastVotes) -> Routed:
        require_sizes(self.bias, votes.weight.shape[2:])
        flat, coupling = fused_scaled_distance_routing(
            poses,
            votes.activations.flatten(0, -2),
            votes.weight,
            self.bias,
            settings=DistanceSettings(
                sharpness(votes.weight.shape[2]),
                self.iterations,
                whole_batch=self.scope == "batch",
                full=self.gradient == "full",
            ),
            return_coupling=votes.return_coupling,
        )
        routed = flat.view(*votes.where, *flat.shape[1:])
        coupling = None if coupling is None else coupling.view(*votes.where, *coupling.shape[1:])
        return Routed(routed, torch.linalg.vector_norm(routed, dim=-1), coupling)

    def batch_parts(self, votes: UncastVotes) -> Parts | None:
        """On a CPU, as many samples at a time as its cache holds the votes of."""
        sees_whole_batch = self.scope == "batch" or is_watched(self)  # hooks see the whole batch as well
        if type(self) is not ScaledDistanceRouting or sees_whole_batch or votes.poses.device.type != "cpu":
            return None
        return Parts(max(1, _VOTES_AT_ONCE // votes.numbers_of_sample))

    def cost(self, shape: RoutingShape) -> RoutingCost:
        """Work at one position: limit the votes, pool in each round, distances in all but the last."""
        in_caps, out_caps, pose = shape
        rounds, pairs = self.iterations, in_caps * out_caps
        bias = 0 if self.bias is None else out_caps * pose
        elementwise = pairs * (3 * pose + 4)
        elementwise += rounds * (out_caps * squash_cost(pose) + bias)
        distances = pairs * (pose + length_cost(pose) + 2) + 4
        elementwise += (rounds - 1) * (distances + in_caps * softmax_cost(out_caps))
        return RoutingCost(rounds * pairs * pose, elementwise + out_caps * length_cost(pose))
