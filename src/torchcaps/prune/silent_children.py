"""Children that vote zero for every parent: whether they can go, and what their couplings were."""

from __future__ import annotations

from jaxtyping import Float
from torch import Tensor

from torchcaps.layers import SelectedFcCaps
from torchcaps.models import Removable
from torchcaps.routing import DynamicRouting, SelfAttentionRouting


def drops_children(parts: Removable) -> bool:
    """Whether a child that votes zero can go.

    In other routings such a vote still counts, and of children that share matrices none votes zero alone.
    """
    own_matrices = len(parts.parents.weight) == parts.parents.in_caps
    ignores_zeros = type(parts.parents.routing) in (DynamicRouting, SelfAttentionRouting)
    return parts.selects and own_matrices and ignores_zeros


def silent_coupling(parts: Removable) -> Float[Tensor, "in_caps out_caps"]:
    """The couplings of each child when it votes zero."""
    parents = parts.parents
    votes = parents.weight.new_zeros(1, parents.in_caps, *parents.weight.shape[2:])
    routed = parents.routing(votes, votes.new_zeros(votes.shape[:2]))
    assert routed.coupling is not None
    if not isinstance(parents, SelectedFcCaps):
        return routed.coupling[0]
    return parents.silent_coupling.index_copy(0, parents.voters, routed.coupling[0])
