"""Counts of true and predicted classes, and what follows from them."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int64, Integer
from torch import Tensor


class Confusion:
    """How often each true class was taken for each class, counted on the device of the data."""

    def __init__(self, classes: int, device: torch.device) -> None:
        self._classes = classes
        self._counts = torch.zeros(classes * classes, dtype=torch.int64, device=device)

    def add(self, true: Integer[Tensor, "*any"], predicted: Integer[Tensor, "*any"]) -> None:
        """Count pairs of class numbers."""
        self._counts += torch.bincount(
            (true.long() * self._classes + predicted).flatten(), minlength=self._classes**2
        )

    def table(self) -> Int64[Tensor, "true predicted"]:
        """The counts, on the CPU."""
        return self._counts.view(self._classes, self._classes).cpu()


def accuracy(table: Int64[Tensor, "true predicted"]) -> float:
    """The share that was right."""
    return float(table.diagonal().sum()) / float(table.sum())


def dice(table: Int64[Tensor, "true predicted"]) -> Float[Tensor, " classes"]:
    """2 |A and B| / (|A| + |B|) of each class; NaN where a class is neither there nor predicted."""
    return 2 * table.diagonal().double() / (table.sum(0) + table.sum(1))


def intersection_over_union(table: Int64[Tensor, "true predicted"]) -> Float[Tensor, " classes"]:
    """|A and B| / |A or B| of each class; NaN where a class is neither there nor predicted."""
    hits = table.diagonal().double()
    return hits / (table.sum(0) + table.sum(1) - hits)


def recall(table: Int64[Tensor, "true predicted"]) -> Float[Tensor, " classes"]:
    """The share of each true class that was found; NaN where there is none."""
    return table.diagonal().double() / table.sum(1)


def plain(values: Tensor) -> list[float | None]:
    """Numbers as JSON has them: None for what could not be computed."""
    return [None if value != value else value for value in values.tolist()]
