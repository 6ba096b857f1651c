"""Classification: one class for each image."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from PIL import Image
from torch import Tensor

from torchcaps.core import CapsuleOutput, PoseOutput, UserError
from torchcaps.data import DatasetInfo, Examples, LabelledImages

from ..objective import Objective
from .api import TASKS, Answer, Meter, Task
from .confusion import Confusion, accuracy, plain, recall


class ClassMeter(Meter[CapsuleOutput, Tensor]):
    """Counts which class was taken for which."""

    def __init__(self, examples: Examples, objective: Objective) -> None:
        super().__init__(examples, objective)
        self._confusion = Confusion(len(examples.classes), examples.device)

    def measure(self, output: CapsuleOutput | PoseOutput, targets: Tensor) -> None:
        """Count true classes and those with the largest activation."""
        self._confusion.add(targets, output.activations.argmax(1))

    def metrics(self) -> tuple[Mapping[str, float], Mapping[str, object]]:
        """Accuracy; accuracy per class and the counts."""
        table = self._confusion.table()
        each = dict(zip(self.examples.classes, plain(recall(table)), strict=True))
        return {"accuracy": accuracy(table)}, {"class_accuracy": each, "confusion": table.tolist()}


@TASKS.register("classification")
class Classification(Task[CapsuleOutput, Tensor]):
    """One class for each image."""

    name: ClassVar[str] = "classification"
    examples: ClassVar[type[Examples]] = LabelledImages
    default_loss: ClassVar[str] = "margin"
    is_explained: ClassVar[bool] = True
    metric_names: ClassVar[tuple[str, ...]] = ("accuracy",)

    def meter(self, examples: Examples, objective: Objective) -> ClassMeter:
        """Counts of classes."""
        return ClassMeter(examples, objective)

    def outputs(self, output: CapsuleOutput) -> dict[str, Tensor]:
        """Activations, poses, and the reconstruction of the longest capsule where there is a decoder."""
        found = {"activations": output.activations, "poses": output.poses}
        return found if output.reconstruction is None else {**found, "reconstruction": output.reconstruction}

    def answer(self, outputs: Mapping[str, Tensor], info: DatasetInfo, picture: Image.Image) -> Answer:
        """The class with the largest activation, the next one, and all activations by class name."""
        del picture
        return class_answer(outputs["activations"][0], info)


def class_answer(activations: Tensor, info: DatasetInfo) -> Answer:
    """The class with the largest of `activations`, the runner-up, and by how much it is ahead."""
    values = activations.float().cpu()
    if values.shape != (len(info.classes),):
        raise UserError(
            f"the network answers with {list(values.shape)} activations for {len(info.classes)} classes; "
            "its file or the card of its data is damaged"
        )
    (first, second), (winner, other) = (part.tolist() for part in values.topk(2))
    name, runner_up = info.classes[winner], info.classes[other]
    row = {
        "class": name,
        "activation": round(first, 6),
        "runner_up": runner_up,
        "margin": round(first - second, 6),
        "activations": {
            each: round(float(value), 6) for each, value in zip(info.classes, values, strict=True)
        },
    }
    words = f"{name} (activation {first:.3f}; next {runner_up}, {second:.3f})"
    return Answer(row, words)
