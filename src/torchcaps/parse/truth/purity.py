"""Whether a type of capsule stands for one part."""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from torchcaps.core import UserError


class Purity(NamedTuple):
    """The share of the activation on parts that a type spends on its favourite part.

    `base` is what types would have that all prefer the most active part.
    """

    purity: float
    base: float


def part_purity(
    activations: Float[Tensor, "images capsules"],
    owners: Int64[Tensor, "images capsules"],
    types: Int64[Tensor, " capsules"],
    num_parts: int,
) -> Purity:
    """How far capsules of one type are active on one part alone, over all images.

    Args:
        activations: At least zero.
        owners: What each capsule looks at: 1..num_parts are parts, all else is left out.
        types: Of each capsule.
        num_parts: How many parts there are.
    """
    if num_parts < 1:
        raise UserError(f"there must be at least one part, got {num_parts}")
    is_part = (owners >= 1) & (owners <= num_parts)
    kinds = int(types.max()) + 1
    cell = types.to(owners.device).expand_as(owners) * num_parts + (owners - 1)
    mass = torch.zeros(kinds * num_parts, dtype=torch.float64, device=owners.device)
    mass.index_add_(0, cell[is_part], activations[is_part].double())
    table = mass.view(kinds, num_parts)
    whole = float(table.sum())
    if whole <= 0:
        return Purity(float("nan"), float("nan"))
    return Purity(float(table.amax(1).sum()) / whole, float(table.sum(0).max()) / whole)
