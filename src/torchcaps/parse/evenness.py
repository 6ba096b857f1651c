"""How far the couplings of a routed layer are from an even split."""

from __future__ import annotations

from dataclasses import dataclass

from jaxtyping import Float, Int
from torch import Tensor

from torchcaps.inspection import distance_from_uniform

_DECIDED = 0.5  # even shares by which a child that routing has decided prefers some parent
_FEWEST_DECIDED = 0.05  # of the children: with fewer, a layer hardly routes
_FEWEST_LOST = 0.005  # of the accuracy, with even couplings: with less, couplings decide hardly any answer
_CHANCE = 5  # images lost that may be chance: six of six are rarer than 5 % (sign test)
_ROUNDING = 1e-3  # by which couplings that split a child may miss one, in any precision but the coarsest


@dataclass(frozen=True)
class Evenness:
    """How the children of one routed layer split themselves over its parents.

    An even share is 1 / parents. A layer hardly routes when fewer than 5 % of its children have a coupling
    that lies more than half an even share above the mean of their couplings. Where couplings split a child,
    that mean is the even share, so such a coupling is more than 1.5 even shares. A layer with one parent
    leaves no choice, so it hardly routes too.
    """

    parents: int
    largest: float  # coupling of a child to its strongest parent, median over children
    mean: float  # of all couplings; the even share where they split a child
    doubled: float  # share of the children with a coupling more than an even share above their mean
    decided: float  # share of the children with a coupling more than half an even share above their mean
    to_chosen: float | None = None  # coupling of a child to the chosen class, median over children
    is_split: bool = True  # whether couplings split a child: positive and adding up to one

    @property
    def hardly_routes(self) -> bool:
        """Whether the couplings are close to an even split."""
        return self.decided < _FEWEST_DECIDED


def say_needless(accuracy: float, even_accuracy: float, *, images: int) -> str:
    """A sentence for a network that is as accurate with even couplings; else nothing.

    As accurate is one that loses at most half a point, or five of the images that it was measured on.
    """
    if round(images * (accuracy - even_accuracy)) > max(_CHANCE, images * _FEWEST_LOST):
        return ""
    return "as accurate with even couplings: these trees do not say why it answers as it does"


def measure_evenness(
    coupling: Float[Tensor, "images in_caps out_caps"], chosen: Int[Tensor, " images"] | None = None
) -> Evenness:
    """How even the couplings of one routed layer are, over all children of all images.

    Couplings count as they are, also where they do not split a child: weak ones decide nothing, however they
    compare with each other, and a constant added to all of them changes nothing.

    Args:
        coupling: Of one routed layer.
        chosen: The class of each image, where the parents are classes.
    """
    given = coupling.detach().double()
    parents, largest = given.shape[-1], given.amax(-1)
    above = largest - given.mean(-1)
    to_chosen = None
    if chosen is not None:
        index = chosen.view(-1, 1, 1).expand(-1, given.shape[1], 1)
        to_chosen = _median(given.gather(2, index))
    return Evenness(
        parents=parents,
        largest=_median(largest),
        mean=float(given.mean()),
        doubled=_share_above(above, 1 / parents),
        decided=_share_above(above, _DECIDED / parents),
        to_chosen=to_chosen,
        is_split=_is_split(given),
    )


def distance_from_even(coupling: Float[Tensor, "images in_caps out_caps"]) -> float:
    """How far children are from even couplings on average: 0 is even, 1 gives everything to one parent.

    Half the sum of differences between the couplings of a child and their mean (the total variation, where
    they are a split), divided by what a child has that gives 1 to one parent and 0 to the others. A layer
    with one parent leaves no choice and has 0.
    """
    given = coupling.detach().double()
    centred = given - given.mean(-1, keepdim=True)
    return float(distance_from_uniform(centred + 1 / given.shape[-1]))


def _is_split(coupling: Tensor) -> bool:
    """Whether the couplings of every child are positive and add up to one."""
    misses = (coupling.sum(-1) - 1).abs().amax()
    return bool(misses <= _ROUNDING and coupling.amin() >= -_ROUNDING)


def _median(values: Tensor) -> float:
    """The middle value, or the mean of the two in the middle, of which torch gives the lower."""
    return float(values.median() - (-values).median()) / 2


def _share_above(values: Tensor, limit: float) -> float:
    return float((values > limit * (1 + 2e-6)).double().mean())  # single precision is no evidence
