"""The dataset of a recipe: its splits, on the device that trains, at the size that is stored."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch
from torch import Tensor

from torchcaps.core import ImageSize, UserError, generator, listed, sides
from torchcaps.data import (
    FOLDER_PREFIX,
    DatasetInfo,
    Examples,
    LabelledImages,
    Mode,
    open_dataset,
    resize_bytes,
)
from torchcaps.models import Network

from .recipe import Data, Recipe
from .tasks import AnyTask


@dataclass(frozen=True)
class Splits:
    """The examples of a run; in memory they stay on the device as bytes."""

    train: Examples
    validation: Examples
    info: DatasetInfo


class Source:
    """The dataset of a recipe, as its task reads it.

    Args:
        settings: The part of the recipe about data.
        task: What the examples are for.
        size: Of the network's images; photographs of many sizes are brought to it unless the recipe resizes,
            pads or crops them.
        data_dir: Folder of the datasets.
    """

    def __init__(
        self,
        settings: Data,
        task: AnyTask,
        size: ImageSize = 0,
        data_dir: Path | None = None,
        *,
        in_colour: bool = False,
    ) -> None:
        self.settings, self.task = settings, task
        preprocess = settings.preprocess
        has_own_size = preprocess.pad or preprocess.center_crop or settings.augment.crop
        self._dataset = open_dataset(
            settings.name,
            data_dir,
            size=preprocess.resize or (0 if has_own_size else size),
            fit=settings.fit,
            task=task.name,
            in_colour=in_colour,
        )

    def info(self) -> DatasetInfo:
        """What is known about the dataset, at the size to which photographs are brought."""
        return self._dataset.info

    def splits(self, device: torch.device) -> Splits:
        """Training and validation examples, resized once."""
        settings, whole = self.settings, self._checked(self._dataset.examples("train"))
        if settings.limit:
            order = torch.randperm(len(whole), generator=generator(settings.split_seed, "limit"))
            whole = whole.subset(order[: settings.limit].sort().values)
        train, validation = (
            self.task.split(whole, settings.validation, settings.split_seed)
            if self._dataset.validation is None
            else (whole, self._dataset.validation())
        )
        if settings.name.startswith(FOLDER_PREFIX):
            _require_all_classes(whole, train, settings)
        return Splits(self._stored(train, device), self._stored(validation, device), self.info())

    def test(self, device: torch.device) -> Examples:
        """The test examples, resized once."""
        return self._stored(self._checked(self._dataset.examples("test")), device)

    def _checked(self, found: Examples) -> Examples:
        """Return the examples if the task learns from such ones; else raise."""
        if not isinstance(found, self.task.examples):
            raise UserError(
                f"dataset {self.settings.name} is for {found.task}, "
                f"the model of this recipe for {self.task.name}"
            )
        return found

    def _stored(self, examples: Examples, device: torch.device) -> Examples:
        examples, resize = examples.to(device), self.settings.preprocess.resize
        if not resize or tuple(examples.images.shape[2:]) == sides(resize):
            return examples
        return examples.resized(partial(_resized, size=sides(resize)))


def _require_all_classes(whole: Examples, train: Examples, settings: Data) -> None:
    """Raise where all images of a class of few would validate: the network could not learn the class."""
    if not isinstance(whole, LabelledImages) or not isinstance(train, LabelledImages):
        return
    lost = sorted(set(whole.labels.tolist()) - set(train.labels.tolist()))
    if lost:
        raise UserError(
            f"{settings.name}: no image of {listed([whole.classes[label] for label in lost])} would train, "
            f"because the few that there are were drawn to validate; add images, or draw others: "
            f"--set data.split_seed={settings.split_seed + 1}"
        )


def source_of(recipe: Recipe, network: Network, data_dir: Path | None = None) -> Source:
    """The dataset of a recipe, at the size of its network and in its colours."""
    channels, height, width = network.image_shape
    return Source(recipe.data, recipe.task, (height, width), data_dir, in_colour=channels == 3)


def _resized(pictures: Tensor, mode: Mode, size: tuple[int, int], at_once: int = 4096) -> Tensor:
    starts = range(0, len(pictures), at_once)
    return torch.cat([resize_bytes(pictures[start : start + at_once], mode, size) for start in starts])
