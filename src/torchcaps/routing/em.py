"""Expectation-maximisation routing, in log space (Hinton, Sabour & Frosst 2018)."""

from __future__ import annotations

import math

import torch
from jaxtyping import Float
from torch import Tensor, einsum, nn
from torch.nn import functional as F

from torchcaps.core.types import Routed

from .api import ROUTINGS, RoutingShape, keep_float32, require_iterations


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


@keep_float32
def em_routing(
    votes: Float[Tensor, "*where in_caps out_caps pose"],
    activations: Float[Tensor, "*where in_caps"],
    *,
    activation_cost: Float[Tensor, " out_caps"],
    vote_cost: Float[Tensor, " out_caps"],
    iterations: int = 3,
    inverse_temperature: float = 1.0,
    min_variance: float = 5e-4,
) -> Routed:
    """Explain the votes by one Gaussian per output capsule.

    A parent's cost is divided by the number of children it would own in an even split, so that one inverse
    temperature fits layers of any size; the authors' 0.01 belongs to undivided costs of some hundred children.
    Parents at one position compete; a layer whose positions compete too must fold them into `out_caps`.

    Args:
        votes: One pose prediction per (input, output) pair, matrix poses flattened.
        activations: Probability that each child is present; a child at zero is ignored.
        activation_cost: What each parent must be worth before it is active (beta_a).
        vote_cost: Cost per pose component of not using a parent (beta_u).
        iterations: M-steps; 1 means parents are fitted to an even split.
        inverse_temperature: Final lambda; step t uses `lambda * (1 - 0.95**(t + 1))`.
        min_variance: Added to each variance: a parent with a single child would have none.

    Returns:
        Parents' means as poses, activations, and the couplings of the last M-step.
    """
    require_iterations(iterations)
    in_caps, out_caps, pose = votes.shape[-3:]
    coupling = votes.new_full(votes.shape[:-1], 1 / out_caps)
    for step in range(iterations):
        mass, mean, variance = _fit_gaussians(coupling * activations.unsqueeze(-1), votes, min_variance)
        cost = (pose * vote_cost + 0.5 * variance.log().sum(-1)) * mass * (out_caps / in_caps)
        logit = inverse_temperature * (1 - 0.95 ** (step + 1)) * (activation_cost - cost)
        if step < iterations - 1:
            coupling = (F.logsigmoid(logit).unsqueeze(-2) + _log_density(votes, mean, variance)).softmax(-1)
    return Routed(mean, logit.sigmoid(), coupling)


@ROUTINGS.register("em")
class EMRouting(nn.Module):
    """`em_routing` with its settings and the two learned costs of each parent."""

    def __init__(
        self,
        shape: RoutingShape,
        *,
        iterations: int = 3,
        inverse_temperature: float = 1.0,
        min_variance: float = 5e-4,
    ) -> None:
        super().__init__()
        self.iterations = require_iterations(iterations)
        self.inverse_temperature = inverse_temperature
        self.min_variance = min_variance
        self.activation_cost = nn.Parameter(torch.zeros(shape.out_caps))
        self.vote_cost = nn.Parameter(torch.zeros(shape.out_caps))

    def forward(
        self,
        votes: Float[Tensor, "*where in_caps out_caps pose"],
        activations: Float[Tensor, "*where in_caps"],
    ) -> Routed:
        """Route `votes`."""
        return em_routing(
            votes,
            activations,
            activation_cost=self.activation_cost,
            vote_cost=self.vote_cost,
            iterations=self.iterations,
            inverse_temperature=self.inverse_temperature,
            min_variance=self.min_variance,
        )
