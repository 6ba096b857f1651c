"""The order in which votes lie in memory."""

from __future__ import annotations

from jaxtyping import Float
from torch import Tensor


def by_parent(
    votes: Float[Tensor, "*where in_caps out_caps pose"],
) -> Float[Tensor, "*where in_caps out_caps pose"]:
    """The same votes, those for one parent next to each other in memory.

    Sums over the children are matrix products of a parent, which read this order. From any other, each of
    them copies all votes first, and keeps the copy for the backward pass.
    """
    return votes.transpose(-3, -2).contiguous().transpose(-3, -2)
