"""Variational Bayes routing: EM routing with priors instead of guards (Ribeiro, Leontidis & Kollias 2020)."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, einsum, nn

from torchcaps.core import Routed

from .api import ROUTINGS, RoutingShape, keep_float32, require_iterations, require_sizes, say_settings
from .cost import RoutingCost, sigmoid_cost, softmax_cost


class Posterior(NamedTuple):
    """What is believed of each parent once some children are assigned to it."""

    log_share: Float[Tensor, "*where out_caps"]  # expected log of its share of the children
    centre: Float[Tensor, "*where out_caps pose"]
    certainty: Float[Tensor, "*where out_caps"]  # of the centre, counted in children (kappa)
    freedom: Float[Tensor, "*where out_caps"]  # of the precision (nu)
    scatter: Float[Tensor, "*where out_caps pose"]  # of the precision (Psi)

    @property
    def log_precision(self) -> Float[Tensor, "*where out_caps pose"]:
        """Expected log of the precision of each pose component."""
        return (0.5 * self.freedom).digamma().unsqueeze(-1) + math.log(2) - self.scatter.log()


def update_posterior(
    weights: Float[Tensor, "*where in_caps out_caps"], votes: Float[Tensor, "*where in_caps out_caps pose"]
) -> Posterior:
    """The posterior given weighted couplings; priors: alpha, kappa and Psi one, nu `pose + 1`, mean zero."""
    mass = weights.sum(-2)
    concentration, certainty = 1 + mass, 1 + mass
    total = einsum("...io,...iod->...od", weights, votes)
    mean = total / (mass.unsqueeze(-1) + 1e-7)
    spread = einsum("...io,...iod->...od", weights, (votes - mean.unsqueeze(-3)).square())
    pull = (mass / certainty).unsqueeze(-1) * mean.square()  # of the prior mean, zero
    return Posterior(
        concentration.digamma() - concentration.sum(-1, keepdim=True).digamma(),
        total / certainty.unsqueeze(-1),
        certainty,
        votes.shape[-1] + 1 + mass,
        1 + spread + pull,
    )


def expected_log_density(
    votes: Float[Tensor, "*where in_caps out_caps pose"], posterior: Posterior
) -> Float[Tensor, "*where in_caps out_caps"]:
    """Expected log of each vote's density under its parent, share included (Bishop 2006, eq. 10.64)."""
    precision = (posterior.freedom.unsqueeze(-1) / posterior.scatter).unsqueeze(-3)
    scaled = ((votes - posterior.centre.unsqueeze(-3)).square() * precision).sum(-1)
    constant = posterior.log_precision.sum(-1) - votes.shape[-1] * (
        math.log(2 * math.pi) + 1 / posterior.certainty
    )
    return (posterior.log_share + 0.5 * constant).unsqueeze(-2) - 0.5 * scaled


@keep_float32
def believed_parents(
    votes: Float[Tensor, "*where in_caps out_caps pose"],
    activations: Float[Tensor, "*where in_caps"],
    *,
    coupling: Float[Tensor, "*where in_caps out_caps"],
    activation_cost: Float[Tensor, " out_caps"],
    vote_cost: Float[Tensor, " out_caps"],
) -> Routed:
    """Centres of the posterior that given couplings lead to, active where the children agree."""
    pose = votes.shape[-1]
    posterior = update_posterior(coupling.to(votes.dtype) * activations.unsqueeze(-1), votes)
    entropy = 0.5 * (pose * (1 + math.log(2 * math.pi)) - posterior.log_precision.sum(-1))
    # weighed by the expected share, not by mass, and without temperature: not the cost of EM
    cost = posterior.log_share.exp() * (pose * vote_cost.to(votes.dtype) + entropy)
    return Routed(posterior.centre, (activation_cost.to(votes.dtype) - cost).sigmoid(), coupling)


@keep_float32
def variational_bayes_routing(
    votes: Float[Tensor, "*where in_caps out_caps pose"],
    activations: Float[Tensor, "*where in_caps"],
    *,
    activation_cost: Float[Tensor, " out_caps"],
    vote_cost: Float[Tensor, " out_caps"],
    iterations: int = 3,
) -> Routed:
    """Explain the votes by a mixture whose parameters are themselves uncertain.

    Parents have a Dirichlet prior on their shares and, in each pose component, a Gaussian-Wishart prior on
    mean and precision: the diagonal form, without matrix inverses. The paper's batch normalisation is left
    out, since it would let samples see each other.

    Args:
        votes: One pose prediction per (input, output) pair, matrix poses flattened.
        activations: Probability that each child is present; a child at zero is ignored.
        activation_cost: What each parent must be worth before it is active (beta_a).
        vote_cost: Cost per pose component of a parent (beta_u).
        iterations: Updates of the posterior; 1 means an even split.

    Returns:
        Centres as poses; activations, high for parents whose children agree; the couplings of the last round.
    """
    require_iterations(iterations)
    coupling = votes.new_full(votes.shape[:-1], 1 / votes.shape[-2])
    for _ in range(iterations - 1):
        posterior = update_posterior(coupling * activations.unsqueeze(-1), votes)
        coupling = expected_log_density(votes, posterior).softmax(-1)
    return believed_parents(
        votes, activations, coupling=coupling, activation_cost=activation_cost, vote_cost=vote_cost
    )


@ROUTINGS.register("variational_bayes")
class VariationalBayesRouting(nn.Module):
    """`variational_bayes_routing` with its settings and the two learned costs of each parent."""

    extra_repr = say_settings

    def __init__(self, shape: RoutingShape, *, iterations: int = 3) -> None:
        super().__init__()
        self.iterations = require_iterations(iterations)
        self.activation_cost = nn.Parameter(torch.zeros(shape.out_caps))
        self.vote_cost = nn.Parameter(torch.zeros(shape.out_caps))

    def forward(
        self,
        votes: Float[Tensor, "*where in_caps out_caps pose"],
        activations: Float[Tensor, "*where in_caps"],
    ) -> Routed:
        """Route `votes`."""
        require_sizes(self.activation_cost, votes.shape[-2:-1])
        return variational_bayes_routing(
            votes,
            activations,
            activation_cost=self.activation_cost,
            vote_cost=self.vote_cost,
            iterations=self.iterations,
        )

    def read_out(
        self,
        votes: Float[Tensor, "*where in_caps out_caps pose"],
        activations: Float[Tensor, "*where in_caps"],
        coupling: Float[Tensor, "*where in_caps out_caps"],
    ) -> Routed:
        """The parents that `coupling` makes, as after the last round."""
        return believed_parents(
            votes,
            activations,
            coupling=coupling,
            activation_cost=self.activation_cost,
            vote_cost=self.vote_cost,
        )

    def cost(self, shape: RoutingShape) -> RoutingCost:
        """Work at one position; a digamma counts as one operation."""
        in_caps, out_caps, pose = shape
        rounds, pairs, components = self.iterations, in_caps * out_caps, out_caps * pose
        update = pairs * (2 * pose + 2) + 6 * components + 8 * out_caps + 1
        expect = pairs * (4 * pose + 2) + 4 * components + 9 * out_caps + in_caps * softmax_cost(out_caps)
        final = 3 * components + 10 * out_caps + sigmoid_cost(out_caps)
        return RoutingCost(2 * rounds * pairs * pose, rounds * update + (rounds - 1) * expect + final)
