"""What a trained network says of images that lie on disk."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from PIL import Image
from torch import Tensor

from torchcaps.core import UserError
from torchcaps.data import (
    PICTURE_MODES,
    DatasetInfo,
    as_bytes,
    fit_picture,
    open_any,
    undo_resize_and_crop,
    without_transparency,
)

from .numbered import NumberedImages, is_numbered
from .pipeline import Pipeline
from .recipe import Recipe
from .run import Run, load_split
from .tasks import Answer


def open_picture(path: Path | Image.Image, info: DatasetInfo) -> Image.Image:
    """The image in a file, or one that is open, in the colours of the dataset and at its own size."""
    if info.channels not in PICTURE_MODES:
        raise UserError(f"image files have 1 or 3 channels; this model wants {info.channels}")
    return without_transparency(open_any(path, deep="scale")).convert(PICTURE_MODES[info.channels])


def open_named(path: Path, info: DatasetInfo, own: NumberedImages | None) -> Image.Image:
    """`open_picture`, where a name such as `test:17` stands for an image of a run's own data."""
    if not is_numbered(path):
        return open_picture(path, info)
    if own is None:
        raise UserError(f"{path}: an exported file has no data of its own; give the folder of its run")
    return own.picture(str(path)).convert(PICTURE_MODES.get(info.channels))


def read_named(path: Path, info: DatasetInfo, own: NumberedImages | None) -> tuple[Image.Image, Tensor]:
    """`open_named`, and the picture as bytes (1, channels, height, width), fitted to the size of the dataset.

    An image of a run's own data has the size that the recipe stores it at, and stays as it is.
    """
    picture = open_named(path, info, own)
    if own is None or not is_numbered(path):
        return picture, fit_to_data(picture, info)
    examples, index = own.find(str(path))
    return picture, examples.images[index : index + 1]


def read_image(path: Path | Image.Image, info: DatasetInfo) -> Tensor:
    """An image as in `open_picture` as bytes (1, channels, height, width), in the size of the dataset."""
    return fit_to_data(open_picture(path, info), info)


def fit_to_data(picture: Image.Image, info: DatasetInfo) -> Tensor:
    """A picture as bytes (1, channels, height, width), fitted to the size of the dataset."""
    return as_bytes(fit_picture(picture, info.height, info.width, info.fit)).unsqueeze(0)


def top_classes(row: Mapping[str, Any], count: int) -> list[tuple[str, float]]:
    """The `count` classes with the largest activations of an answer's row, the largest first."""
    if "activations" not in row:
        raise UserError("only a network that classifies whole images has a list of classes to choose from")
    return sorted(row["activations"].items(), key=lambda each: -each[1])[:count]


@dataclass(frozen=True)
class Predictor:
    """All it takes to answer for an image file: what becomes of the image, and the network behind it."""

    info: DatasetInfo
    recipe: Recipe
    device: torch.device
    network: Callable[[Tensor], Mapping[str, Tensor]]  # normalised images to the outputs of the task
    own: NumberedImages | None = None  # of the run's data; an exported file has none

    def answer(self, picture: Image.Image) -> Answer:
        """What the network says of a picture."""
        return self._answer(picture, fit_to_data(picture, self.info))

    def answer_file(self, path: Path) -> Answer:
        """What the network says of an image file, or of one of the run's own data such as `test:17`."""
        return self._answer(*read_named(path, self.info, self.own))

    @torch.no_grad()
    def _answer(self, picture: Image.Image, image: Tensor) -> Answer:
        batch = Pipeline(self.recipe.data, self.info).for_evaluation(image.to(self.device))
        outputs = self.network(batch.inputs)
        leading = next(iter(outputs.values()))
        if not bool(leading.isfinite().all()):
            raise UserError("the network answers with numbers that are not finite; its weights are damaged")
        seen, stored = batch.inputs.shape[2:], (image.shape[2], image.shape[3])
        laid = {
            name: undo_resize_and_crop(output, self.recipe.data.preprocess, stored)
            if output.shape[2:] == seen  # a map of the image, such as a mask
            else output
            for name, output in outputs.items()
        }
        return self.recipe.task.answer(laid, self.info, picture)


def predictor_of(run: Run, data_dir: Path | None = None) -> Predictor:
    """The predictor of a run, on the device its network is on."""

    def network(inputs: Tensor) -> Mapping[str, Tensor]:
        return run.task.outputs(run.task.call(run.model, inputs, None))

    return Predictor(
        info=run.info(data_dir),
        recipe=run.recipe,
        device=run.device,
        network=network,
        own=own_images(run, data_dir),
    )


def own_images(run: Run, data_dir: Path | None = None) -> NumberedImages:
    """The images of a run's own data, by number."""
    return NumberedImages(lambda split: load_split(run, split, data_dir=data_dir)[0])
