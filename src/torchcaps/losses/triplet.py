"""Triplet loss over all valid triplets of a batch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float, Int
from torch import Tensor

from torchcaps.core import DescriptorOutput, UserError, require_labels

from .api import LOSSES, Loss


def batch_all_triplet_loss(
    descriptors: Float[Tensor, "batch descriptor"],
    places: Int[Tensor, " batch"],
    *,
    margin: float = 0.2,
) -> Float[Tensor, ""]:
    """How much nearer images of other places are than `margin` allows, over all triplets of a batch.

    Distances are Euclidean. Triplets of an anchor, another image of its place and an image of another
    place are formed; the mean is over those that still cost something (Hermans 2017, batch all, non-zero
    mean). A batch without a costly triplet has loss 0.
    """
    require_labels(descriptors, places)
    distances = _distances(descriptors)
    same = places.unsqueeze(0) == places.unsqueeze(1)
    is_positive = same & ~torch.eye(len(places), dtype=torch.bool, device=places.device)
    costs = distances.unsqueeze(2) - distances.unsqueeze(1) + margin  # (anchor, positive, negative)
    is_valid = is_positive.unsqueeze(2) & ~same.unsqueeze(1)
    costs = torch.where(is_valid, costs, 0.0).relu()
    costly = (costs > 0).sum()
    return costs.sum() / costly.clamp(min=1)


def _distances(descriptors: Tensor) -> Tensor:
    """Euclidean distances of all pairs, with a gradient of zero where two descriptors coincide."""
    products = descriptors @ descriptors.T
    squares = products.diagonal()
    squared = (squares.unsqueeze(0) - 2 * products + squares.unsqueeze(1)).clamp(min=0)
    is_zero = squared <= torch.finfo(squared.dtype).eps
    return torch.where(is_zero, 0.0, squared.masked_fill(is_zero, 1.0).sqrt())


@LOSSES.register("triplet")
@dataclass(frozen=True, kw_only=True)
class TripletLoss(Loss[DescriptorOutput, Tensor]):
    """`batch_all_triplet_loss` with its settings.

    Attributes:
        margin: By how much images of other places should be farther away.
    """

    task: ClassVar[str] = "retrieval"
    compares_images: ClassVar[bool] = True
    margin: float = 0.2

    def __post_init__(self) -> None:
        if self.margin <= 0:
            raise UserError(f"loss.margin must be positive, got {self.margin}")

    def __call__(
        self, output: DescriptorOutput, places: Int[Tensor, " batch"], /, **_: Tensor
    ) -> Float[Tensor, ""]:
        """The loss of a batch with several images of each place."""
        return batch_all_triplet_loss(output.descriptors, places, margin=self.margin)
