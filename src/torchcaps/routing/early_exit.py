"""Dynamic routing at inference that lets each sample stop when its couplings have settled."""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, einsum

from torchcaps.core import Routed, UserError, squash

from .api import keep_float32, require_iterations
from .dynamic import pool_votes, split_over_parents


class Settled(NamedTuple):
    """Parents, and how many rounds each sample took."""

    routed: Routed
    rounds: Int[Tensor, " batch"]


@torch.no_grad()
def settled_dynamic_routing(
    votes: Float[Tensor, "batch in_caps out_caps pose"],
    activations: Float[Tensor, "batch in_caps"],
    *,
    iterations: int = 50,
    tolerance: float = 1e-2,
    leaky: bool = False,
    bias: Float[Tensor, "out_caps pose"] | None = None,
) -> Settled:
    """Route by agreement, each sample until none of its couplings moves by `tolerance` or more in a round.

    With a tolerance of zero it is `dynamic_routing`, to the bit. Samples that have settled are left out of
    further rounds, so the work is that of the rounds taken.

    Args:
        votes: One pose prediction per (input, output) pair.
        activations: Not read, as in `dynamic_routing`.
        iterations: The most rounds that a sample takes.
        tolerance: The largest change of a coupling that counts as none.
        leaky: Adds a "none of them" parent.
        bias: Added to each parent's pooled votes in every round.
    """
    require_iterations(iterations)
    if tolerance < 0:
        raise UserError(f"tolerance must not be negative, got {tolerance}")
    if votes.ndim != 4:  # without a batch, each capsule would be taken for a sample
        raise UserError(
            f"votes must have a shape of (batch, in_caps, out_caps, pose), got {tuple(votes.shape)}"
        )
    rounds = torch.ones(len(votes), dtype=torch.int64, device=votes.device)
    routed = _route_until_settled(
        votes,
        activations,
        rounds=rounds,
        iterations=iterations,
        tolerance=tolerance,
        leaky=leaky,
        bias=bias,
    )
    return Settled(routed, rounds)


@keep_float32
def _route_until_settled(
    votes: Float[Tensor, "batch in_caps out_caps pose"],
    activations: Float[Tensor, "batch in_caps"],
    *,
    rounds: Int[Tensor, " batch"],
    iterations: int,
    tolerance: float,
    leaky: bool,
    bias: Float[Tensor, "out_caps pose"] | None,
) -> Routed:
    """The parents; each sample's rounds after the first are added to `rounds`, in place."""
    offset = votes.new_zeros(()) if bias is None else bias.to(votes.dtype)
    logits = votes.new_zeros(votes.shape[:-1])
    coupling = split_over_parents(logits, leaky)
    moving, their_votes = torch.arange(len(votes), device=votes.device), votes
    for _ in range(iterations - 1):
        before = coupling[moving]
        poses = squash(einsum("...io,...iod->...od", before, their_votes) + offset)
        logits = logits + einsum("...iod,...od->...io", their_votes, poses)
        now = split_over_parents(logits, leaky)
        coupling[moving], rounds[moving] = now, rounds[moving] + 1
        still = (now - before).abs().flatten(1).amax(1) >= tolerance
        if not still.all():
            moving, their_votes, logits = moving[still], their_votes[still], logits[still]
        if not len(moving):
            break
    return pool_votes(votes, activations, coupling=coupling, bias=bias)
