"""What becomes of stored images before the network sees them, on the device of the data."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from torchcaps.core import Targets
from torchcaps.data import Augment, DatasetInfo, Examples, normalize, resize_and_crop_pairs

from .recipe import Data


class Batch(NamedTuple):
    """Images as they look, images as the network gets them, and what it should say of them."""

    images: Tensor
    inputs: Tensor
    targets: Targets | None


class Pipeline:
    """What happens to a batch between storage and network, for training and for evaluation."""

    def __init__(self, settings: Data, info: DatasetInfo) -> None:
        self.settings = settings
        self.info = info

    def for_training(self, examples: Examples, indices: Tensor, random: torch.Generator) -> Batch:
        """The chosen examples, augmented; masks move with their images."""
        return self._prepared(*examples.at(indices), self.settings.augment, random)

    def for_evaluation(self, images: Tensor, targets: Targets | None = None) -> Batch:
        """Images at the size of the network, unchanged otherwise."""
        return self._prepared(images, targets)

    def _prepared(
        self,
        images: Tensor,
        targets: Targets | None,
        changes: Augment | None = None,
        random: torch.Generator | None = None,
    ) -> Batch:
        settings = self.settings.preprocess
        masks = targets if isinstance(targets, Tensor) and targets.ndim == 3 else None
        images, moved = resize_and_crop_pairs(images, masks, settings, changes, random)
        return Batch(images, normalize(images, settings, self.info), targets if moved is None else moved)
