"""Slot attention as a routing: parents are slots, updated by a recurrent network (Locatello 2020)."""

from __future__ import annotations

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor, einsum, nn

from torchcaps.core import Routed

from .api import ROUTINGS, RoutingShape, keep_float32, require_iterations, require_sizes, say_settings
from .cost import RoutingCost, layer_norm_cost, sigmoid_cost, softmax_cost

Project = Callable[[Tensor], Tensor]


@keep_float32
def slot_attention_routing(
    votes: Float[Tensor, "*where in_caps out_caps pose"],
    activations: Float[Tensor, "*where in_caps"],
    *,
    slots: Float[Tensor, "out_caps pose"],
    project: tuple[Project, Project, Project],
    update: Callable[[Tensor, Tensor], Tensor],
    score: Project,
    iterations: int = 3,
) -> Routed:
    """Let slots compete for the children, then let each take in the mean of what it won.

    In the paper every slot sees the same inputs; here a child casts a different vote for each. Slots start
    from learned poses, not from random draws, because a class capsule must keep its class. Children are
    weighted by their activations; when all are equal the weighted mean is the paper's.

    Args:
        votes: One pose prediction per (input, output) pair.
        activations: Weight of each child in the mean.
        slots: Where the parents start.
        project: What makes queries of poses, and keys and values of votes.
        update: The next pose, from what a slot took in and the pose before.
        score: The logit of presence of a pose.
        iterations: Rounds of attention.

    Returns:
        Slots as poses, the sigmoid of their scores as activations, and the couplings of the last round.
    """
    require_iterations(iterations)
    query, key, value = project
    keys, values = key(votes) * votes.shape[-1] ** -0.5, value(votes)
    # a sum and not a view, so that `vmap` over votes also maps the state that the GRU changes in place
    poses = slots + votes.new_zeros(*votes.shape[:-3], *slots.shape)
    for _ in range(iterations):
        coupling = einsum("...iod,...od->...io", keys, query(poses)).softmax(dim=-1)
        weights = coupling * activations.unsqueeze(-1)
        share = weights / (weights.sum(-2, keepdim=True) + 1e-8)
        poses = update(einsum("...io,...iod->...od", share, values), poses)
    return Routed(poses, score(poses).squeeze(-1).sigmoid(), coupling)


@ROUTINGS.register("slot_attention")
class SlotAttentionRouting(nn.Module):
    """`slot_attention_routing` with its settings, projections, recurrent update and score.

    A layer after which nothing reads the activations leaves the score unlearned.
    """

    extra_repr = say_settings

    def __init__(self, shape: RoutingShape, *, iterations: int = 3) -> None:
        super().__init__()
        pose = shape.pose
        self.iterations = require_iterations(iterations)
        self.slots = nn.Parameter(torch.randn(shape.out_caps, pose).mul_(pose**-0.5))
        self.vote_norm, self.slot_norm, self.update_norm = (nn.LayerNorm(pose) for _ in range(3))
        self.query, self.key, self.value = (nn.Linear(pose, pose, bias=False) for _ in range(3))
        self.recur = nn.GRUCell(pose, pose)
        self.refine = nn.Sequential(nn.Linear(pose, 2 * pose), nn.ReLU(), nn.Linear(2 * pose, pose))
        self.score = nn.Linear(pose, 1)

    def forward(
        self,
        votes: Float[Tensor, "*where in_caps out_caps pose"],
        activations: Float[Tensor, "*where in_caps"],
    ) -> Routed:
        """Route `votes`."""
        require_sizes(self.slots, votes.shape[-2:])
        dtype = torch.float64 if votes.dtype == torch.float64 else torch.float32
        if self.slots.dtype != dtype:  # the routing computes in this dtype, and its layers must too
            parameters = {name: parameter.to(dtype) for name, parameter in self.named_parameters()}
            return torch.func.functional_call(self, parameters, (votes, activations))
        return slot_attention_routing(
            votes,
            activations,
            slots=self.slots,
            project=(
                lambda poses: self.query(self.slot_norm(poses)),
                lambda votes: self.key(self.vote_norm(votes)),
                lambda votes: self.value(self.vote_norm(votes)),
            ),
            update=self._update,
            score=self.score,
            iterations=self.iterations,
        )

    def _update(self, taken: Tensor, poses: Tensor) -> Tensor:
        flat = self.recur(taken.flatten(0, -2), poses.flatten(0, -2)).view(poses.shape)
        return flat + self.refine(self.update_norm(flat))

    def cost(self, shape: RoutingShape) -> RoutingCost:
        """Work at one position: two projections of every vote, then in each round attention and update."""
        in_caps, out_caps, pose = shape
        pairs = in_caps * out_caps
        update_macs = out_caps * 11 * pose**2  # query, six gate matrices, two layers twice as wide as long
        multiply_adds = 2 * pairs * pose**2 + self.iterations * (2 * pairs * pose + update_macs)
        each_round = in_caps * softmax_cost(out_caps) + 3 * pairs + out_caps
        each_round += out_caps * (2 * layer_norm_cost(pose) + 25 * pose + 6 * pose)  # gates, then refinement
        elementwise = pairs * (2 * layer_norm_cost(pose) + pose) + self.iterations * each_round
        elementwise += out_caps * pose + out_caps + sigmoid_cost(out_caps)  # the first slots; the scores
        return RoutingCost(multiply_adds + out_caps * pose, elementwise)
