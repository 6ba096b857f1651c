"""EM routing of rotations: votes of either sign agree, and parents have one variance for all components.

A quaternion and its negative are the same rotation, so that votes are turned to one side of their mean before
they are averaged; otherwise those that agree can cancel. One variance for all components makes the routing
equivariant: when all votes are turned together, parents turn with them.
"""

from __future__ import annotations

import math
from typing import Literal, get_args

import torch
from jaxtyping import Float
from torch import Tensor, einsum, nn
from torch.nn import functional as F

from torchcaps.core import AXIAL_SQUARINGS, Routed, axial_mean, require_choice

from .api import ROUTINGS, RoutingShape, keep_float32, require_iterations, require_sizes, say_settings
from .cost import RoutingCost, sigmoid_cost, softmax_cost
from .em import EMCosts, EMSettings, presence_logit, require_variance

Average = Literal["hemisphere", "markley"]


def fit_rotations(
    votes: Float[Tensor, "*where in_caps out_caps pose"],
    weights: Float[Tensor, "*where in_caps out_caps"],
    *,
    average: Average,
    min_variance: float,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """M-step: mass, mean and variance of each parent, and the squared distance of each vote from its mean.

    Args:
        votes: One rotation per (input, output) pair, of either sign.
        weights: Couplings times activations.
        average: "hemisphere" is the mean of votes on the side of Markley's mean; "markley" that mean itself.
        min_variance: Added to each variance.
    """
    mass = weights.sum(-2) + 1e-7
    axis = axial_mean(votes.transpose(-3, -2), weights.transpose(-2, -1)).unsqueeze(-3)
    is_other_side = (votes * axis).sum(-1, keepdim=True) < 0
    aligned = torch.where(is_other_side, -votes, votes)
    share = weights / mass.unsqueeze(-2)
    mean = axis if average == "markley" else einsum("...io,...iod->...od", share, aligned).unsqueeze(-3)
    distance = (aligned - mean).square().sum(-1)
    variance = (share * distance).sum(-2) / votes.shape[-1] + min_variance
    return mass, mean.squeeze(-3), variance, distance


@keep_float32
def em_rotation_routing(
    votes: Float[Tensor, "*where in_caps out_caps pose"],
    activations: Float[Tensor, "*where in_caps"],
    *,
    costs: EMCosts,
    settings: EMSettings,
    average: Average = "hemisphere",
    coupling: Float[Tensor, "*where in_caps out_caps"] | None = None,
) -> Routed:
    """Explain the votes by one Gaussian with a single variance per output capsule; see `em_routing`.

    Args:
        votes: One rotation per (input, output) pair, of either sign; its length must lie between 1e-12 and
            1e12, or squares leave the numbers of float32.
        activations: Probability that each child is present.
        costs: The learned costs of each parent.
        settings: Iterations, inverse temperature and smallest variance.
        average: As in `fit_rotations`.
        coupling: Of the last M-step, the only one then; found in the loop by default.
    """
    require_iterations(settings.iterations)
    require_choice("average", average, get_args(Average))
    in_caps, out_caps, pose = votes.shape[-3:]
    rounds = range(settings.iterations if coupling is None else 1)
    if coupling is None:
        coupling = votes.new_full(votes.shape[:-1], 1 / out_caps)
    for step in rounds:
        weights = coupling.to(votes.dtype) * activations.unsqueeze(-1)
        mass, mean, variance, distance = fit_rotations(
            votes, weights, average=average, min_variance=settings.min_variance
        )
        # the cost of `em` with one variance; multiplied in another order, which rounds differently
        cost = pose * (costs.vote + 0.5 * variance.log()) * mass * (out_caps / in_caps)
        at_step = step if len(rounds) > 1 else settings.iterations - 1
        logit = presence_logit(cost, costs=costs, settings=settings, step=at_step)
        if step + 1 < len(rounds):
            density = -0.5 * (distance / variance.unsqueeze(-2))
            constant = 0.5 * pose * (2 * math.pi * variance).log()
            coupling = (density + (F.logsigmoid(logit) - constant).unsqueeze(-2)).softmax(-1)
    return Routed(mean, logit.sigmoid(), coupling)


def em_rotation_cost(shape: RoutingShape, iterations: int, average: Average) -> RoutingCost:
    """Work of `iterations` M-steps, and of E-steps between them, on the votes of one position."""
    in_caps, out_caps, pose = shape
    pairs = in_caps * out_caps
    products = pairs * pose**2 + AXIAL_SQUARINGS * out_caps * pose**3
    products += pairs * pose if average == "hemisphere" else 0
    mean_axis = AXIAL_SQUARINGS * (pose**2 + pose + 1) + 4 * pose + 2
    m_step = pairs * (8 * pose + 6) + out_caps * (mean_axis + 11)
    e_step = 3 * pairs + 4 * out_caps + in_caps * softmax_cost(out_caps)
    elementwise = iterations * m_step + (iterations - 1) * (e_step + sigmoid_cost(out_caps))
    return RoutingCost(iterations * products, elementwise + sigmoid_cost(out_caps))


@ROUTINGS.register("em_rotation")
class EMRotationRouting(nn.Module):
    """`em_rotation_routing` with its settings and the two learned costs of each parent."""

    extra_repr = say_settings

    def __init__(
        self,
        shape: RoutingShape,
        *,
        iterations: int = 3,
        inverse_temperature: float = 1.0,
        min_variance: float = 0.01,
        average: Average = "hemisphere",
    ) -> None:
        super().__init__()
        self.iterations = require_iterations(iterations)
        self.inverse_temperature, self.min_variance = inverse_temperature, require_variance(min_variance)
        self.average: Average = require_choice("average", average, get_args(Average))
        self.activation_cost = nn.Parameter(torch.zeros(shape.out_caps))
        self.vote_cost = nn.Parameter(torch.zeros(shape.out_caps))

    def _route(self, votes: Tensor, activations: Tensor, coupling: Tensor | None) -> Routed:
        require_sizes(self.activation_cost, votes.shape[-2:-1])
        return em_rotation_routing(
            votes,
            activations,
            costs=EMCosts(self.activation_cost, self.vote_cost),
            settings=EMSettings(self.iterations, self.inverse_temperature, self.min_variance),
            average=self.average,
            coupling=coupling,
        )

    def forward(
        self,
        votes: Float[Tensor, "*where in_caps out_caps pose"],
        activations: Float[Tensor, "*where in_caps"],
    ) -> Routed:
        """Route `votes`."""
        return self._route(votes, activations, None)

    def read_out(
        self,
        votes: Float[Tensor, "*where in_caps out_caps pose"],
        activations: Float[Tensor, "*where in_caps"],
        coupling: Float[Tensor, "*where in_caps out_caps"],
    ) -> Routed:
        """The parents that `coupling` makes, as after the last round."""
        return self._route(votes, activations, coupling)

    def cost(self, shape: RoutingShape) -> RoutingCost:
        """Work at one position."""
        return em_rotation_cost(shape, self.iterations, self.average)
