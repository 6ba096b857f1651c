"""Retrieval by metric learning: descriptors that are near for images of the same place."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import ClassVar

import torch
from PIL import Image
from torch import Tensor

from torchcaps.core import DescriptorOutput, Metric, UserError, register_metrics
from torchcaps.data import DatasetInfo, Examples, PlacedImages
from torchcaps.models import Network

from ..objective import Objective
from .api import TASKS, Answer, Meter, Task

register_metrics(Metric("recall_at_1", "recall at 1", "higher", "%", 100.0))

_GROUP = 100  # images whose triplets are formed together
_ROWS = 1024  # descriptors that are compared with all others at once


class DescriptorMeter(Meter[DescriptorOutput, Tensor]):
    """Keeps all descriptors of a split, for each image is compared with all others."""

    def __init__(self, examples: Examples, objective: Objective) -> None:
        super().__init__(examples, objective)
        self._descriptors: list[Tensor] = []
        self._places: list[Tensor] = []

    def add(self, output: DescriptorOutput, targets: Tensor, images: Tensor) -> None:
        """Take in a batch. No loss is added: it would depend on which images share a batch."""
        del images
        self.measure(output, targets)

    def loss(self) -> float:
        """The mean loss of fixed groups of images, in the order of their places."""
        descriptors, places = torch.cat(self._descriptors), torch.cat(self._places)
        order = places.argsort(stable=True)
        parts = [DescriptorOutput(descriptors[rows]) for rows in torch.split(order, _GROUP)]
        losses = [
            self.objective.evaluate(part, places[rows], part.descriptors) * len(rows)
            for part, rows in zip(parts, torch.split(order, _GROUP), strict=True)
        ]
        return float(torch.stack(losses).sum()) / len(places)

    def measure(self, output: DescriptorOutput, targets: Tensor) -> None:
        """Keep the descriptors of a batch."""
        self._descriptors.append(output.descriptors.float())
        self._places.append(targets)

    def metrics(self) -> tuple[Mapping[str, float], Mapping[str, object]]:
        """The share of images whose nearest other image shows the same place."""
        descriptors, places = torch.cat(self._descriptors), torch.cat(self._places)
        hits = 0
        for rows in torch.split(torch.arange(len(places), device=places.device), _ROWS):
            distances = torch.cdist(descriptors[rows], descriptors)
            distances[torch.arange(len(rows)), rows] = torch.inf
            hits += int((places[distances.argmin(1)] == places[rows]).sum())
        return {"recall_at_1": hits / len(places)}, {}


@TASKS.register("retrieval")
class Retrieval(Task[DescriptorOutput, Tensor]):
    """A descriptor for each image."""

    name: ClassVar[str] = "retrieval"
    examples: ClassVar[type[Examples]] = PlacedImages
    default_loss: ClassVar[str] = "triplet"
    knows_classes: ClassVar[bool] = False  # places of evaluation are new ones
    metric_names: ClassVar[tuple[str, ...]] = ("recall_at_1",)

    def check_model(self, model: Network, info: DatasetInfo) -> None:
        """Any descriptor network fits any places."""

    def batches(
        self, examples: Examples, batch_size: int, per_place: int, random: torch.Generator
    ) -> list[Tensor]:
        """`batch_size / per_place` places in each batch, and `per_place` images of each.

        An epoch shows as many images as there are. A place with fewer than `per_place` images is left out.
        """
        groups = _groups(examples, per_place)
        places = batch_size // per_place
        if batch_size % per_place or places < 2:
            raise UserError(
                f"batch_size {batch_size} is not a number of places times {per_place} images "
                "(data.images_per_place), with two places or more"
            )
        if len(groups) < places:
            raise _too_few_places(len(groups), batch_size, per_place)
        return [_draw_batch(groups, places, per_place, random) for _ in range(len(examples) // batch_size)]

    def decoded(self, model: Callable[..., DescriptorOutput], targets: Tensor) -> tuple[Tensor, ...]:
        """Nothing: a descriptor does not depend on the targets."""
        del model, targets
        return ()

    def meter(self, examples: Examples, objective: Objective) -> DescriptorMeter:
        """All descriptors."""
        return DescriptorMeter(examples, objective)

    def outputs(self, output: DescriptorOutput) -> dict[str, Tensor]:
        """The descriptors."""
        return {"descriptors": output.descriptors}

    def answer(self, outputs: Mapping[str, Tensor], info: DatasetInfo, picture: Image.Image) -> Answer:
        """The descriptor itself."""
        del info, picture
        values = [round(value, 6) for value in outputs["descriptors"][0].float().tolist()]
        return Answer({"descriptor": values}, " ".join(f"{value:.4f}" for value in values))


def _too_few_places(found: int, batch_size: int, per_place: int) -> UserError:
    if found < 2:
        return UserError(
            f"training needs two places or more with {per_place} images each (data.images_per_place), but "
            f"has {found}; add places, or images of each (uav train: --places and --views)"
        )
    return UserError(
        f"a batch of {batch_size} images holds {batch_size // per_place} places, but only {found} places "
        f"train with {per_place} images or more; add places, or give --set batch_size={found * per_place}"
    )


def _groups(examples: Examples, least: int) -> list[Tensor]:
    """The indices of the images of each place that has at least `least`."""
    places = examples.targets["places"].to("cpu")
    assert isinstance(places, Tensor)
    order = places.argsort(stable=True)
    counts: list[int] = torch.unique(places, return_counts=True)[1].tolist()
    return [group for group in torch.split(order, counts) if len(group) >= least]


def _draw_batch(groups: list[Tensor], places: int, per_place: int, random: torch.Generator) -> Tensor:
    chosen = torch.randperm(len(groups), generator=random)[:places].tolist()
    parts = (groups[place] for place in chosen)
    return torch.cat([part[torch.randperm(len(part), generator=random)[:per_place]] for part in parts])
