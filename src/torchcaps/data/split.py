"""Setting images aside for validation."""

from __future__ import annotations

from typing import TypeVar, cast

import torch
from jaxtyping import Int64
from torch import Tensor

from torchcaps.core import UserError, generator

from .examples import Examples

Kind = TypeVar("Kind", bound=Examples)


def split_indices(
    count: int, fraction: float = 0.05, seed: int = 0
) -> tuple[Int64[Tensor, " train"], Int64[Tensor, " validation"]]:
    """Which of `count` images train and which validate, in ascending order, by a random stream of its own."""
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


def split_validation(data: Kind, fraction: float = 0.05, seed: int = 0) -> tuple[Kind, Kind]:
    """The training and the validation part of `data`: disjoint, complete, and the same for the same seed.

    Versions of one image stay together: `fraction` is then that of the images they are of. Examples that are
    made of several images are drawn anew, each part from images of its own.
    """
    if data.divide is not None:
        return cast(tuple[Kind, Kind], data.divide(len(data), fraction, seed))
    if data.origins is None:
        train, validation = split_indices(len(data), fraction, seed)
    else:
        found = torch.unique(data.origins)
        train, validation = (
            torch.isin(data.origins, found[part.to(found.device)]).nonzero()[:, 0]
            for part in split_indices(len(found), fraction, seed)
        )
    return data.subset(train), data.subset(validation)
