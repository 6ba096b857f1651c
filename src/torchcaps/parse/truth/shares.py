"""How much of the evidence lies on the object, on clutter and on the background."""

from __future__ import annotations

from typing import NamedTuple

from jaxtyping import Bool, Float
from torch import Tensor


class Shares(NamedTuple):
    """Parts of the evidence, mean over images; they add up to one."""

    on_object: float
    on_clutter: float
    on_background: float


def evidence_shares(
    maps: Float[Tensor, "images height width"],
    is_object: Bool[Tensor, "images height width"],
    is_clutter: Bool[Tensor, "images height width"],
) -> Shares:
    """The part of each map on the object and on clutter; negative values and empty maps are left out.

    A map of ones gives the shares of the areas, which a map without any preference has.
    """
    positive = maps.clamp(min=0).double()
    whole = positive.sum((1, 2))
    kept = whole > 0
    if not kept.any():
        return Shares(float("nan"), float("nan"), float("nan"))
    on_object, on_clutter = (
        float(((positive * mask).sum((1, 2))[kept] / whole[kept]).mean()) for mask in (is_object, is_clutter)
    )
    return Shares(on_object, on_clutter, 1 - on_object - on_clutter)
