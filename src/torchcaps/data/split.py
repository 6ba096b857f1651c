"""Which examples are set aside for validation."""

from __future__ import annotations

from typing import TypeAlias

import torch
from jaxtyping import Int64
from torch import Tensor

from torchcaps.core import UserError, generator

Parts: TypeAlias = tuple[Int64[Tensor, " train"], Int64[Tensor, " validation"]]  # indices, in ascending order


def split_indices(count: int, fraction: float = 0.05, seed: int = 0) -> Parts:
    """Which of `count` images train and which validate, by a random stream of its own."""
    if not 0 < fraction < 1:
        raise UserError(f"the validation fraction must lie between 0 and 1, got {fraction}")
    num_validation = round(count * fraction)
    if not 0 < num_validation < count:
        raise UserError(
            f"a fraction of {fraction} of {count} images leaves {count - num_validation} for training and "
            f"{num_validation} for validation; each needs at least one: add images or set data.validation"
        )
    order = torch.randperm(count, generator=generator(seed, "validation"))
    return order[num_validation:].sort().values, order[:num_validation].sort().values


def split_groups(groups: Int64[Tensor, " count"], fraction: float, seed: int) -> Parts:
    """As `split_indices`, for examples that are of the same part where they have the same number."""
    numbers = torch.unique(groups)
    train, validation = split_indices(len(numbers), fraction, seed)
    return members(groups, numbers[train]), members(groups, numbers[validation])


def members(groups: Int64[Tensor, " count"], chosen: Int64[Tensor, " _"]) -> Int64[Tensor, " members"]:
    """The indices of the examples whose number is chosen."""
    return torch.isin(groups, chosen).nonzero()[:, 0]
