"""Overlap: the two classes of two objects that lie on top of each other."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import ClassVar

import torch
from PIL import Image
from torch import Tensor

from torchcaps.core import CapsuleOutput, Metric, UserError, register_metrics
from torchcaps.data import DatasetInfo, Examples, OverlaidImages
from torchcaps.models import Network

from ..objective import Objective
from .api import TASKS, Answer, Meter, Task

register_metrics(
    Metric("pair_accuracy", "accuracy of both", "higher", "%", 100.0),
    Metric("digit_accuracy", "accuracy of each", "higher", "%", 100.0),
)


class PairMeter(Meter[CapsuleOutput, Tensor]):
    """Counts images of which both classes, and classes that, are among the two largest activations."""

    def __init__(self, examples: Examples, objective: Objective) -> None:
        super().__init__(examples, objective)
        self._found = torch.zeros(3, dtype=torch.int64, device=examples.device)  # images, pairs, classes

    def measure(self, output: CapsuleOutput, targets: Tensor) -> None:
        """Compare the two largest activations of a batch with its classes, in either order."""
        chosen = output.activations.topk(2, dim=1).indices
        hits = (targets.unsqueeze(2) == chosen.unsqueeze(1)).any(2).sum(1)
        counts = (torch.full_like(hits[0], len(hits)), (hits == 2).sum(), hits.sum())
        self._found += torch.stack(counts)

    def metrics(self) -> tuple[Mapping[str, float], Mapping[str, object]]:
        """The share of images and of classes that were right."""
        images, pairs, classes = self._found.tolist()
        return {"pair_accuracy": pairs / images, "digit_accuracy": classes / (2 * images)}, {}


@TASKS.register("overlap")
class Overlap(Task[CapsuleOutput, Tensor]):
    """Two classes for each image."""

    name: ClassVar[str] = "overlap"
    examples: ClassVar[type[Examples]] = OverlaidImages
    default_loss: ClassVar[str] = "pair_margin"
    metric_names: ClassVar[tuple[str, ...]] = ("pair_accuracy", "digit_accuracy")

    def check_model(self, model: Network, info: DatasetInfo) -> None:
        """Raise also where a model has a decoder."""
        super().check_model(model, info)
        if model.decoder is not None:
            raise UserError("a decoder would draw one of two objects; set model.decoder=none")

    def decoded(self, model: Callable[..., CapsuleOutput], targets: Tensor) -> tuple[Tensor, ...]:
        """Nothing: a model has no decoder."""
        del model, targets
        return ()

    def meter(self, examples: Examples, objective: Objective) -> PairMeter:
        """Counts of pairs."""
        return PairMeter(examples, objective)

    def outputs(self, output: CapsuleOutput) -> dict[str, Tensor]:
        """Activations and poses."""
        return {"activations": output.activations, "poses": output.poses}

    def answer(self, outputs: Mapping[str, Tensor], info: DatasetInfo, picture: Image.Image) -> Answer:
        """The two classes with the largest activations."""
        del picture
        values = outputs["activations"][0].float().cpu()
        (first, second), (one, other) = (part.tolist() for part in values.topk(2))
        names = [info.classes[one], info.classes[other]]
        row = {"classes": names, "activations": [round(first, 6), round(second, 6)]}
        return Answer(row, f"{names[0]} and {names[1]} (activations {first:.3f} and {second:.3f})")
