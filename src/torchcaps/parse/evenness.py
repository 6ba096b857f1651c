"""How far the couplings of a routed layer are from an even split."""

from __future__ import annotations

from dataclasses import dataclass

from jaxtyping import Float, Int
from torch import Tensor

from torchcaps.inspection import distance_from_uniform, parent_shares

_DECIDED = 1.5  # even shares that some parent gets from a child which routing has decided
_FEWEST_DECIDED = 0.05  # of the children: with fewer, a layer hardly routes
_ROUNDING = 1e-3  # by which couplings that split a child may miss one, in any precision but the coarsest


@dataclass(frozen=True)
class Evenness:
    """How the children of one routed layer split themselves over its parents.

    An even share is 1 / parents. A layer hardly routes when fewer than 5 % of its children give any parent
    more than 1.5 times the even share. A layer with one parent leaves no choice, so it hardly routes too.
    """

    parents: int
    largest: float  # coupling of a child to its strongest parent, median over children
    doubled: float  # share of the children that give a parent more than twice the even share
    decided: float  # share of the children that give a parent more than 1.5 times the even share
    to_chosen: float | None = None  # coupling of a child to the chosen class, median over children
    is_split: bool = True  # whether couplings split a child; if not, all of this is about its positive ones

    @property
    def even_share(self) -> float:
        """What each parent gets from a child that prefers none."""
        return 1 / self.parents

    @property
    def hardly_routes(self) -> bool:
        """Whether the couplings are close to an even split."""
        return self.decided < _FEWEST_DECIDED


def measure_evenness(
    coupling: Float[Tensor, "images in_caps out_caps"], chosen: Int[Tensor, " images"] | None = None
) -> Evenness:
    """How even the couplings of one routed layer are, over all children of all images.

    Couplings count as the split of each child over the parents: those that do not add up to one are scaled,
    and negative ones left out, as `is_split` tells.

    Args:
        coupling: Of one routed layer.
        chosen: The class of each image, where the parents are classes.
    """
    given = coupling.detach().double()
    shares = parent_shares(given)
    parents = shares.shape[-1]
    largest = shares.amax(-1)
    to_chosen = None
    if chosen is not None:
        index = chosen.view(-1, 1, 1).expand(-1, shares.shape[1], 1)
        to_chosen = _median(shares.gather(2, index))
    return Evenness(
        parents=parents,
        largest=_median(largest),
        doubled=_share_above(largest, 2 / parents),
        decided=_share_above(largest, _DECIDED / parents),
        to_chosen=to_chosen,
        is_split=_is_split(given),
    )


def distance_from_even(coupling: Float[Tensor, "images in_caps out_caps"]) -> float:
    """How far children are from an even split on average: 0 is even, 1 gives everything to one parent.

    Half the sum of differences between the shares of a child and even ones (their total variation), divided
    by what a child that gives all to one parent has. A layer with one parent leaves no choice and has 0.
    """
    return float(distance_from_uniform(parent_shares(coupling.detach().double())))


def _is_split(coupling: Tensor) -> bool:
    """Whether the couplings of every child are positive and add up to one."""
    misses = (coupling.sum(-1) - 1).abs().amax()
    return bool(misses <= _ROUNDING and coupling.amin() >= -_ROUNDING)


def _median(values: Tensor) -> float:
    """The middle value, or the mean of the two in the middle, of which torch gives the lower."""
    return float(values.median() - (-values).median()) / 2


def _share_above(largest: Tensor, limit: float) -> float:
    return float((largest > limit * (1 + 1e-6)).double().mean())  # single precision is no evidence
