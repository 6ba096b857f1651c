"""Pose: a class and a rotation, as a unit quaternion (w, x, y, z), for each image."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import ClassVar

import torch
from PIL import Image
from torch import Tensor

from torchcaps.core import (
    Metric,
    PoseOutput,
    PoseTarget,
    UserError,
    euler_of_quaternions,
    register_metrics,
    rotation_angle,
)
from torchcaps.data import Augment, DatasetInfo, Examples, PosedImages
from torchcaps.losses import AnyLoss, SpreadRotationLoss, nearest_symmetric, rotations_of

from ..objective import LossSettings, Objective
from .api import TASKS, Answer, Meter, Task
from .classification import ClassMeter, class_answer

register_metrics(
    Metric("rotation_error", "median rotation error", "lower", "°"),
    Metric("rotation_error_mean", "mean rotation error", "lower", "°"),
    Metric("rotation_error_95", "rotation error, 95th percentile", "lower", "°"),
    Metric("symmetric_error", "median rotation error up to symmetry", "lower", "°"),
)


class PoseMeter(Meter[PoseOutput, PoseTarget]):
    """Counts of classes, and the angle by which each predicted rotation is off."""

    def __init__(self, examples: Examples, objective: Objective) -> None:
        super().__init__(examples, objective)
        self._classes = ClassMeter(examples, objective)
        self._angles: list[Tensor] = []
        self._alike: list[Tensor] = []

    def measure(self, output: PoseOutput, targets: PoseTarget) -> None:
        """Take the rotation of the class with the largest activation."""
        self._classes.measure(output, targets.labels)
        chosen = rotations_of(output, output.activations.argmax(1)).float()
        self._angles.append(rotation_angle(chosen, targets.rotations))
        loss, classes = self.objective.settings.task_loss, output.activations.shape[1]
        self._alike.append(symmetric_angle(loss, chosen, targets, classes))

    def metrics(self) -> tuple[Mapping[str, float], Mapping[str, object]]:
        """Errors in degrees over all images, right class or not, and accuracy."""
        found, tables = self._classes.metrics()
        angles = torch.cat(self._angles).double().cpu()
        errors = {
            "rotation_error": float(angles.quantile(0.5)),
            "rotation_error_mean": float(angles.mean()),
            "rotation_error_95": float(angles.quantile(0.95)),
            "symmetric_error": float(torch.cat(self._alike).double().cpu().quantile(0.5)),
        }
        return {**errors, **found}, tables


def symmetric_angle(loss: AnyLoss, found: Tensor, targets: PoseTarget, classes: int) -> Tensor:
    """Degrees by which rotations are off, up to the symmetries of the objects where the loss knows them."""
    groups = loss.groups(targets.labels, classes) if isinstance(loss, SpreadRotationLoss) else None
    true = targets.rotations if groups is None else nearest_symmetric(found, targets.rotations, groups)
    return rotation_angle(found, true)


@TASKS.register("pose")
class Pose(Task[PoseOutput, PoseTarget]):
    """A class and a rotation for each image."""

    name: ClassVar[str] = "pose"
    examples: ClassVar[type[Examples]] = PosedImages
    default_loss: ClassVar[str] = "spread_rotation"
    metric_names: ClassVar[tuple[str, ...]] = (
        "rotation_error",
        "rotation_error_mean",
        "rotation_error_95",
        "symmetric_error",
        "accuracy",
    )

    def shown_metrics(self, loss: LossSettings) -> tuple[Metric, ...]:
        """The error up to symmetry is the rotation error itself where no class has a symmetry."""
        rotation = loss.task_loss
        if isinstance(rotation, SpreadRotationLoss) and rotation.knows_symmetries:
            return self.metrics
        return tuple(each for each in self.metrics if each.name != "symmetric_error")

    def check_augment(self, augment: Augment) -> None:
        """Pixels may change but not move: a turned image shows another rotation."""
        if augment.is_geometric:
            raise UserError(
                "recipe.data.augment moves pixels, and the rotations of a pose task do not move with them; "
                "leave rotation, shear, scale, translation, squish, crop, flip, shift and margin_shift off"
            )

    def decoded(self, model: Callable[..., PoseOutput], targets: PoseTarget) -> tuple[Tensor, ...]:
        """The labels without the rotations."""
        del model
        return (targets.labels,)

    def meter(self, examples: Examples, objective: Objective) -> PoseMeter:
        """Counts of classes and angles."""
        return PoseMeter(examples, objective)

    def outputs(self, output: PoseOutput) -> dict[str, Tensor]:
        """Activations and rotations of all classes."""
        return {"activations": output.activations, "rotations": output.rotations}

    def answer(self, outputs: Mapping[str, Tensor], info: DatasetInfo, picture: Image.Image) -> Answer:
        """The class with the largest activation, and its rotation."""
        del picture
        of_class = class_answer(outputs["activations"][0], info)
        winner = int(outputs["activations"][0].argmax())
        found = outputs["rotations"][0, winner].float().cpu()
        rotation = [round(value, 6) for value in found.tolist()]
        euler = [round(value, 2) for value in euler_of_quaternions(found).tolist()]
        words = (
            f"{of_class.words}, rotation (w, x, y, z) = ({', '.join(f'{value:.3f}' for value in rotation)})"
        )
        return Answer({**of_class.row, "rotation": rotation, "euler": euler}, words)
