"""From stored bytes to what the network sees, on the device of the data."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from torchcaps.core.seeding import generator
from torchcaps.data import (
    DatasetInfo,
    LabelledImages,
    Preprocess,
    dataset_info,
    load_dataset,
    normalize,
    resize_and_crop,
    split_validation,
)

from .recipe import Data


class Batch(NamedTuple):
    """Images as they look, images as the network gets them, and their classes."""

    images: Tensor
    inputs: Tensor
    labels: Tensor


@dataclass(frozen=True)
class Splits:
    """The images of a run; they stay on the device as bytes."""

    train: LabelledImages
    validation: LabelledImages
    info: DatasetInfo


def load_splits(settings: Data, data_dir: Path | None, device: torch.device) -> Splits:
    """Training and validation images of a recipe, resized once."""
    whole = load_dataset(settings.name, "train", data_dir, side=settings.preprocess.resize)
    if settings.limit:
        order = torch.randperm(len(whole), generator=generator(settings.split_seed, "limit"))
        whole = whole.subset(order[: settings.limit].sort().values)
    train, validation = split_validation(whole, settings.validation, settings.split_seed)
    info = info_of(settings, data_dir)
    return Splits(_stored(train, settings, device), _stored(validation, settings, device), info)


def load_test(settings: Data, data_dir: Path | None, device: torch.device) -> LabelledImages:
    """The test images of a recipe, resized once."""
    whole = load_dataset(settings.name, "test", data_dir, side=settings.preprocess.resize)
    return _stored(whole, settings, device)


def info_of(settings: Data, data_dir: Path | None) -> DatasetInfo:
    """What is known about the dataset of a recipe, at the size to which the recipe brings photographs."""
    return dataset_info(settings.name, data_dir, settings.preprocess.resize)


def _stored(data: LabelledImages, settings: Data, device: torch.device) -> LabelledImages:
    data = data.to(device)
    if not settings.preprocess.resize:
        return data
    resize = Preprocess(resize=settings.preprocess.resize)
    parts = [resize_and_crop(part, resize).mul(255).round().byte() for part in torch.split(data.images, 4096)]
    return replace(data, images=torch.cat(parts))


class Pipeline:
    """What happens to a batch between storage and network, for training and for evaluation."""

    def __init__(self, settings: Data, info: DatasetInfo) -> None:
        self.settings = settings
        self.info = info

    def for_training(self, data: LabelledImages, indices: Tensor, random: torch.Generator) -> Batch:
        """The chosen images, augmented."""
        settings = self.settings
        images = resize_and_crop(data.images[indices], settings.preprocess, settings.augment, random)
        return Batch(images, normalize(images, settings.preprocess, self.info), data.labels[indices])

    def for_evaluation(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """Images in [0, 1] at the size of the network, and the same normalised."""
        images = resize_and_crop(images, self.settings.preprocess)
        return images, normalize(images, self.settings.preprocess, self.info)
