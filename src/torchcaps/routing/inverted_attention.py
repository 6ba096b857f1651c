"""Inverted dot-product attention: parents compete for each child (Tsai et al. 2020)."""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, einsum, nn
from torch.nn import functional as F

from torchcaps.core import Routed

from .api import ROUTINGS, RoutingShape, keep_float32, require_iterations, require_sizes, say_settings
from .cost import RoutingCost, layer_norm_cost, sigmoid_cost, softmax_cost


class Normed(NamedTuple):
    """Layer normalisation of pooled votes, and the direction along which a pose means presence."""

    gain: Float[Tensor, " pose"]
    offset: Float[Tensor, " pose"]
    score: Float[Tensor, " pose"]
    score_bias: Float[Tensor, ""]

    def poses(
        self,
        votes: Float[Tensor, "*where in_caps out_caps pose"],
        coupling: Float[Tensor, "*where in_caps out_caps"],
    ) -> Float[Tensor, "*where out_caps pose"]:
        """Votes pooled by couplings, normalised."""
        pooled = einsum("...io,...iod->...od", coupling.to(votes.dtype), votes)
        gain, offset = self.gain.to(votes.dtype), self.offset.to(votes.dtype)
        return F.layer_norm(pooled, votes.shape[-1:], gain, offset)


@keep_float32
def scored_votes(
    votes: Float[Tensor, "*where in_caps out_caps pose"],
    activations: Float[Tensor, "*where in_caps"],
    *,
    coupling: Float[Tensor, "*where in_caps out_caps"],
    normed: Normed,
) -> Routed:
    """Parents as normalised sums of votes, weighted by given couplings; activations by their score."""
    del activations
    poses = normed.poses(votes, coupling)
    score, bias = normed.score.to(votes.dtype), normed.score_bias.to(votes.dtype)
    return Routed(poses, (einsum("...od,d->...o", poses, score) + bias).sigmoid(), coupling)


@keep_float32
def inverted_attention_routing(
    votes: Float[Tensor, "*where in_caps out_caps pose"],
    activations: Float[Tensor, "*where in_caps"],
    *,
    norm_gain: Float[Tensor, " pose"],
    norm_offset: Float[Tensor, " pose"],
    score: Float[Tensor, " pose"],
    score_bias: Float[Tensor, ""],
    iterations: int = 2,
) -> Routed:
    """Route votes to the parents whose normalised poses they point along.

    The paper runs later iterations on all layers at once; a routing sees one layer, so all of them run here,
    one after the other. Layer normalisation gives all poses the same length, which can then not be the
    activation: as in the paper's classifier, one linear function scores the poses of all parents.

    Args:
        votes: One pose prediction per (input, output) pair.
        activations: Not read.
        norm_gain: Gain of the layer normalisation.
        norm_offset: Offset of the layer normalisation.
        score: Direction along which a pose means presence.
        score_bias: Added to the score.
        iterations: Rounds of attention; the first splits evenly.

    Returns:
        Normalised poses, the sigmoid of their scores as activations, and the couplings of the last round.
    """
    require_iterations(iterations)
    normed = Normed(norm_gain, norm_offset, score, score_bias)
    logits = votes.new_zeros(votes.shape[:-1])
    for _ in range(iterations - 1):
        poses = normed.poses(votes, logits.softmax(dim=-1))
        logits = einsum("...iod,...od->...io", votes, poses) * votes.shape[-1] ** -0.5
    return scored_votes(votes, activations, coupling=logits.softmax(dim=-1), normed=normed)


@ROUTINGS.register("inverted_attention")
class InvertedAttentionRouting(nn.Module):
    """`inverted_attention_routing` with its settings, layer normalisation and score.

    A layer after which nothing reads the activations leaves the score unlearned.
    """

    extra_repr = say_settings

    def __init__(self, shape: RoutingShape, *, iterations: int = 2) -> None:
        super().__init__()
        self.iterations = require_iterations(iterations)
        self.norm_gain = nn.Parameter(torch.ones(shape.pose))
        self.norm_offset = nn.Parameter(torch.zeros(shape.pose))
        self.score = nn.Parameter(torch.full((shape.pose,), shape.pose**-0.5))
        self.score_bias = nn.Parameter(torch.zeros(()))

    def forward(
        self,
        votes: Float[Tensor, "*where in_caps out_caps pose"],
        activations: Float[Tensor, "*where in_caps"],
    ) -> Routed:
        """Route `votes`."""
        require_sizes(self.norm_gain, votes.shape[-1:])
        return inverted_attention_routing(
            votes,
            activations,
            norm_gain=self.norm_gain,
            norm_offset=self.norm_offset,
            score=self.score,
            score_bias=self.score_bias,
            iterations=self.iterations,
        )

    def read_out(
        self,
        votes: Float[Tensor, "*where in_caps out_caps pose"],
        activations: Float[Tensor, "*where in_caps"],
        coupling: Float[Tensor, "*where in_caps out_caps"],
    ) -> Routed:
        """The parents that `coupling` makes, as after the last round."""
        normed = Normed(self.norm_gain, self.norm_offset, self.score, self.score_bias)
        return scored_votes(votes, activations, coupling=coupling, normed=normed)

    def cost(self, shape: RoutingShape) -> RoutingCost:
        """Work at one position: pooling in each round, agreement in all but the last, one score."""
        in_caps, out_caps, pose = shape
        rounds, pairs = self.iterations, in_caps * out_caps
        elementwise = rounds * (in_caps * softmax_cost(out_caps) + out_caps * layer_norm_cost(pose))
        elementwise += (rounds - 1) * pairs + out_caps + sigmoid_cost(out_caps)
        return RoutingCost((2 * rounds - 1) * pairs * pose + out_caps * pose, elementwise)
