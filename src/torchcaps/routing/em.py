"""Expectation-maximisation routing, in log space (Hinton, Sabour & Frosst 2018)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, einsum, nn
from torch.nn import functional as F

from torchcaps.core import Routed, UserError
from torchcaps.kernels import EMScales, em_unsupported_reason, fused_em_routing

from .api import ROUTINGS, RoutingShape, keep_float32, require_iterations, require_sizes, say_settings
from .cost import RoutingCost, sigmoid_cost, softmax_cost
from .fused import FusedPath, UncastVotes


class EMCosts(NamedTuple):
    """The learned costs of each parent: of being active (beta_a), and of taking a vote (beta_u)."""

    activation: Float[Tensor, " out_caps"]
    vote: Float[Tensor, " out_caps"]


def require_variance(min_variance: float) -> float:
    """`min_variance` itself when a variance can be that small, else a clear error."""
    if not min_variance >= 0:
        raise UserError(f"min_variance must be 0 or more, got {min_variance}")
    return min_variance


class EMSettings(NamedTuple):
    """Settings of the loop, as explained in `em_routing`."""

    iterations: int = 3
    inverse_temperature: float = 1.0
    min_variance: float = 0.1


def presence_logit(
    cost: Float[Tensor, "*where out_caps"], *, costs: EMCosts, settings: EMSettings, step: int
) -> Float[Tensor, "*where out_caps"]:
    """Logit of presence of parents that cost so much to describe, at the temperature of M-step `step`."""
    return settings.inverse_temperature * (1 - 0.95 ** (step + 1)) * (costs.activation - cost)


def _fit_gaussians(weights: Tensor, votes: Tensor, min_variance: float) -> tuple[Tensor, Tensor, Tensor]:
    """M-step: mass, mean and variance of each parent, from couplings already weighted by activation."""
    mass = weights.sum(-2) + 1e-7
    share = weights / mass.unsqueeze(-2)
    mean = einsum("...io,...iod->...od", share, votes)
    # around the mean, not E[v²]-E[v]²: that difference cancels for votes far from zero
    variance = einsum("...io,...iod->...od", share, (votes - mean.unsqueeze(-3)).square()) + min_variance
    return mass, mean, variance


def _log_density(votes: Tensor, mean: Tensor, variance: Tensor) -> Tensor:
    """Log of each vote's density under its parent's Gaussian."""
    scaled = (votes - mean.unsqueeze(-3)).square() / variance.unsqueeze(-3)
    constant = (2 * math.pi * variance).log().sum(-1).unsqueeze(-2)
    return -0.5 * (scaled.sum(-1) + constant)


def _m_step(
    votes: Tensor,
    weights: Tensor,
    *,
    even_mass: float,
    costs: EMCosts,
    settings: EMSettings,
    step: int,
) -> tuple[Tensor, Tensor, Tensor]:
    """Mean, variance and logit of presence of each parent, at the temperature of M-step `step`."""
    mass, mean, variance = _fit_gaussians(weights, votes, settings.min_variance)
    cost = (votes.shape[-1] * costs.vote + 0.5 * variance.log().sum(-1)) * mass / even_mass
    return mean, variance, presence_logit(cost, costs=costs, settings=settings, step=step)


@keep_float32
def last_m_step(
    votes: Float[Tensor, "*where in_caps out_caps pose"],
    activations: Float[Tensor, "*where in_caps"],
    *,
    coupling: Float[Tensor, "*where in_caps out_caps"],
    even_mass: float,
    costs: EMCosts,
    settings: EMSettings,
) -> Routed:
    """The parents fitted to given couplings, at the final temperature; arguments as in `fit_parents`."""
    weights = coupling.to(votes.dtype) * activations.unsqueeze(-1)
    step = settings.iterations - 1
    mean, _, logit = _m_step(votes, weights, even_mass=even_mass, costs=costs, settings=settings, step=step)
    return Routed(mean, logit.sigmoid(), coupling)


def fit_parents(
    votes: Float[Tensor, "*where in_caps out_caps pose"],
    activations: Float[Tensor, "*where in_caps"],
    *,
    coupling: Float[Tensor, "*where in_caps out_caps"],
    split: Callable[[Tensor], Tensor],
    even_mass: float,
    costs: EMCosts,
    settings: EMSettings,
) -> Routed:
    """The loop of EM routing, for parents that compete in any way.

    Args:
        votes: One pose prediction per (input, output) pair.
        activations: Probability that each child is present.
        coupling: The even split to begin with.
        split: Turns log densities into couplings: a softmax over the parents that compete for a child.
        even_mass: Children that a parent owns in an even split; its cost is divided by this.
        costs: The learned costs of each parent.
        settings: Iterations, inverse temperature and smallest variance.
    """
    require_iterations(settings.iterations)
    fixed: dict[str, Any] = {"even_mass": even_mass, "costs": costs, "settings": settings}
    for step in range(settings.iterations - 1):
        mean, variance, logit = _m_step(votes, coupling * activations.unsqueeze(-1), step=step, **fixed)
        coupling = split(F.logsigmoid(logit).unsqueeze(-2) + _log_density(votes, mean, variance))
    return last_m_step(votes, activations, coupling=coupling, **fixed)


@keep_float32
def em_routing(
    votes: Float[Tensor, "*where in_caps out_caps pose"],
    activations: Float[Tensor, "*where in_caps"],
    *,
    activation_cost: Float[Tensor, " out_caps"],
    vote_cost: Float[Tensor, " out_caps"],
    iterations: int = 3,
    inverse_temperature: float = 1.0,
    min_variance: float = 0.1,
) -> Routed:
    """Explain the votes by one Gaussian per output capsule.

    A parent's cost is divided by the number of children it would own in an even split, so that one inverse
    temperature fits layers of any size; the authors' 0.01 belongs to undivided costs of some hundred
    children. Parents at one position compete; in `layers.em_conv2d` those of all positions do.

    Args:
        votes: One pose prediction per (input, output) pair, matrix poses flattened.
        activations: Probability that each child is present; a child at zero is ignored.
        activation_cost: What each parent must be worth before it is active (beta_a).
        vote_cost: Cost per pose component of not using a parent (beta_u).
        iterations: M-steps; 1 means parents are fitted to an even split.
        inverse_temperature: Final lambda; step t uses `lambda * (1 - 0.95**(t + 1))`.
        min_variance: Added to each variance: a parent with a single child would have none. The
            authors' 5e-4 lets a parent explain votes that begin close together so well that its activation
            starts near one, where the gradient is lost.

    Returns:
        Parents' means as poses, activations, and the couplings of the last M-step.
    """
    in_caps, out_caps = votes.shape[-3:-1]
    return fit_parents(
        votes,
        activations,
        coupling=votes.new_full(votes.shape[:-1], 1 / out_caps),
        split=lambda log_density: log_density.softmax(-1),
        even_mass=in_caps / out_caps,
        costs=EMCosts(activation_cost, vote_cost),
        settings=EMSettings(iterations, inverse_temperature, min_variance),
    )


def em_cost(shape: RoutingShape, iterations: int) -> RoutingCost:
    """Work of `iterations` M-steps, and of E-steps between them, on the votes of one position."""
    in_caps, out_caps, pose = shape
    pairs, components = in_caps * out_caps, out_caps * pose
    m_step = pairs * (2 * pose + 3) + 3 * components + 8 * out_caps
    e_step = pairs * (4 * pose + 3) + 3 * components + in_caps * softmax_cost(out_caps)
    elementwise = iterations * m_step + (iterations - 1) * (e_step + sigmoid_cost(out_caps))
    return RoutingCost(iterations * 2 * pairs * pose, elementwise + sigmoid_cost(out_caps))


@ROUTINGS.register("em")
class EMRouting(nn.Module):
    """`em_routing` with its settings and the two learned costs of each parent."""

    extra_repr = say_settings

    def __init__(
        self,
        shape: RoutingShape,
        *,
        iterations: int = 3,
        inverse_temperature: float = 1.0,
        min_variance: float = 0.1,
    ) -> None:
        super().__init__()
        self.iterations = require_iterations(iterations)
        self.inverse_temperature = inverse_temperature
        self.min_variance = require_variance(min_variance)
        self.activation_cost = nn.Parameter(torch.zeros(shape.out_caps))
        self.vote_cost = nn.Parameter(torch.zeros(shape.out_caps))

    def forward(
        self,
        votes: Float[Tensor, "*where in_caps out_caps pose"],
        activations: Float[Tensor, "*where in_caps"],
    ) -> Routed:
        """Route `votes`."""
        require_sizes(self.activation_cost, votes.shape[-2:-1])
        return em_routing(
            votes,
            activations,
            activation_cost=self.activation_cost,
            vote_cost=self.vote_cost,
            iterations=self.iterations,
            inverse_temperature=self.inverse_temperature,
            min_variance=self.min_variance,
        )

    def read_out(
        self,
        votes: Float[Tensor, "*where in_caps out_caps pose"],
        activations: Float[Tensor, "*where in_caps"],
        coupling: Float[Tensor, "*where in_caps out_caps"],
    ) -> Routed:
        """The parents that `coupling` makes, as after the last round."""
        return last_m_step(
            votes,
            activations,
            coupling=coupling,
            even_mass=self.even_mass(votes.shape[:-1]),
            costs=EMCosts(self.activation_cost, self.vote_cost),
            settings=self.settings,
        )

    @property
    def settings(self) -> EMSettings:
        """Settings of the loop."""
        return EMSettings(self.iterations, self.inverse_temperature, self.min_variance)

    def even_mass(self, shape: Sequence[int]) -> float:
        """Children that a parent owns in an even split of couplings of this shape."""
        in_caps, out_caps = shape[-2:]
        return in_caps / out_caps

    def fuse(self, votes: UncastVotes, *, insist: bool) -> FusedPath:
        """A kernel for any device that gives no couplings."""
        positions = votes._replace(
            poses=votes.poses.flatten(0, -3)[:, None, None],
            activations=votes.activations.flatten(0, -2)[:, None, None],
        )
        return self._fuse_windows(positions, (1, 1), votes.where, insist)

    def _fuse_windows(
        self, votes: UncastVotes, window: tuple[int, int], where: torch.Size, insist: bool
    ) -> FusedPath:
        """The kernel for windows of this side and stride; parents have the axes `where`."""
        if votes.return_coupling:
            return "the couplings were asked for, which only the plain path gives"
        reason = em_unsupported_reason(votes.poses, votes.weight, insist=insist)
        return reason or partial(self._route_windows, votes, window, where)

    def _route_windows(self, votes: UncastVotes, window: tuple[int, int], where: torch.Size) -> Routed:
        require_sizes(self.activation_cost, votes.weight.shape[2:3])
        even_mass = self.even_mass((*votes.where, votes.poses.shape[-2], votes.weight.shape[2]))
        poses, activations = fused_em_routing(
            votes.poses,
            votes.activations,
            votes.weight,
            costs=(self.activation_cost, self.vote_cost),
            window=window,
            scales=EMScales(*self.settings, even_mass),
            offsets=votes.offsets,
        )
        return Routed(poses.view(*where, *poses.shape[3:]), activations.view(*where, -1), None)

    def cost(self, shape: RoutingShape) -> RoutingCost:
        """Work at one position."""
        return em_cost(shape, self.iterations)
