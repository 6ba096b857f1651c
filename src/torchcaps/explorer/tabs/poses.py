"""The pose tab: an object in the true and in the predicted rotation, both turning."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from torchcaps.apps.pose import Estimator, forgives_symmetries
from torchcaps.core import UserError, hamilton
from torchcaps.data import PosedImages, load_dataset
from torchcaps.data.rendering import render_smooth
from torchcaps.train import Pipeline, load_run
from torchcaps.train.tasks import symmetric_angle

from ..subject import picture_uri

FRAMES = 12
_SIDE = 128  # pixels of a frame


class PoseShow:
    """A run that estimates poses, on the test images of its dataset."""

    def __init__(self, folder: Path, data_dir: Path | None = None) -> None:
        self.run = load_run(folder)
        estimator = Estimator(self.run, None, data_dir)
        if estimator.meshes is None:
            raise UserError(f"The objects that {folder.name} was trained on are not on this machine.")
        self.meshes, self.info = estimator.meshes, estimator.info
        self.view = replace(estimator.view, height=_SIDE, width=_SIDE)
        self.pipeline = Pipeline(self.run.recipe.data, self.info)
        # rendered one by one, as they are asked for
        size = self.run.model.image_shape[1:]
        self.images = load_dataset(self.run.recipe.data.name, "test", data_dir, size=size, task="pose")

    @torch.no_grad()
    def show(self, number: int) -> dict[str, Any]:
        """One test image: what was said of it, and both rotations in turning frames."""
        if not isinstance(self.images, PosedImages) or not 0 <= number < len(self.images):
            raise UserError(f"There are images 0 to {len(self.images) - 1}.")
        image = self.images.images[number : number + 1]
        truth = self.images.targets_at(torch.tensor([number]))
        output = self.run.model(self.pipeline.for_evaluation(image).inputs)
        winner, label = int(output.activations.argmax()), int(truth.labels)
        found = output.rotations[0, winner].float().view(1, 4)
        names, loss = self.info.classes, self.run.recipe.loss.task_loss
        off = float(symmetric_angle(loss, found, truth, len(names)))
        same = ", or from one that looks the same" if forgives_symmetries(self.run) else ""
        return {
            "picture": picture_uri(image[0]),
            "total": len(self.images),
            "frames": FRAMES,
            "true": self._turning(label, truth.rotations),
            "predicted": self._turning(winner, found),
            "words": (
                f"The network reads {names[winner]}, and it is {names[label]}. "
                f"Its turn is {off:.0f}° away from the true one{same}."
            ),
        }

    def _turning(self, label: int, rotation: Tensor) -> str:
        """A strip of frames, in which the object turns once about the upright axis."""
        angles = torch.arange(FRAMES) * (2 * math.pi / FRAMES) / 2
        zero = torch.zeros(FRAMES)
        turns = torch.stack([angles.cos(), zero, zero, angles.sin()], dim=1)
        frames = render_smooth(self.meshes.of_class(label)[0], hamilton(turns, rotation), self.view)
        return picture_uri(torch.cat(list(frames), dim=-1))
