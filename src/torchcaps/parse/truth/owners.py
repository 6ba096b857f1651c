"""What each capsule looks at."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Int64, Integer
from torch import Tensor

from ..places import CapsuleMap
from ..regions import Regions


def owners_in_regions(
    owners: Integer[Tensor, "images height width"], regions: Regions
) -> Int64[Tensor, "images capsules"]:
    """The number at the pixel that each capsule looks at, in the order of the capsules.

    A capsule on a grid looks at the centre of what it sees. One that reads a whole map looks at the centre of
    what that place of the map sees which adds most to its length.
    """
    found = owners_of_capsules(owners, regions.maps)
    if regions.shares is None:
        return found
    return found.gather(1, regions.shares.flatten(2).argmax(2))


def owners_of_capsules(
    owners: Integer[Tensor, "images height width"], maps: Sequence[CapsuleMap]
) -> Int64[Tensor, "images capsules"]:
    """The number at the pixel in the centre of what each capsule sees, in the order of the capsules.

    Args:
        owners: What is seen at each pixel, as in `PartWhole`.
        maps: The grids on which the capsules stand.
    """
    found = []
    for each in maps:
        rows, columns = (
            _centres(count, first, each.field.step, pixels).to(owners.device)
            for count, first, pixels in zip(each.grid[:2], each.field.first, owners.shape[1:], strict=True)
        )
        at = owners[:, rows][:, :, columns].long()
        found.append(at.unsqueeze(-1).expand(-1, -1, -1, each.grid[2]).flatten(1))
    return torch.cat(found, dim=1)


def _centres(count: int, first: float, step: float | int, pixels: int) -> Int64[Tensor, " {count}"]:
    """The pixel nearest to each centre; half a pixel is rounded down."""
    at = torch.tensor([first + step * number for number in range(count)])
    return (at - 0.5).ceil().long().clamp(0, pixels - 1)
