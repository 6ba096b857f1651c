"""What an exported file says about itself."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from torchcaps.core.errors import UserError
from torchcaps.data import DatasetInfo, LabelledImages, Split

from ..recipe import Recipe, build

CARD = "torchcaps.json"  # name of the entry in an exported file


@dataclass(frozen=True, kw_only=True)
class Card:
    """The recipe of a network, and what must be done to an image before the network sees it.

    An image is read with `channels` channels, stretched or, if `is_cropped`, cropped to the middle and
    brought to `height` x `width`, scaled to [0, 1] and then treated as `recipe.data.preprocess` says, with
    `mean` and `std` per channel.
    """

    recipe: Recipe
    classes: tuple[str, ...]
    mean: tuple[float, ...]
    std: tuple[float, ...]
    channels: int
    height: int
    width: int
    is_cropped: bool = False
    input: tuple[int, int, int]  # channels, height and width that the network takes
    outputs: tuple[str, ...]
    epoch: int
    version: str

    @property
    def info(self) -> DatasetInfo:
        """The dataset as far as the file knows it, without its images."""
        return DatasetInfo(
            name=self.recipe.data.name,
            title=self.recipe.data.name,
            channels=self.channels,
            height=self.height,
            width=self.width,
            classes=self.classes,
            mean=self.mean,
            std=self.std,
            num_train=0,
            num_test=0,
            licence="",
            reader=_without_images,
            sized_reader=_without_images if self.is_cropped else None,
        )


def read_card(text: str | None, path: Path) -> Card:
    """The card in `text`; a file that has none was not exported by this library."""
    if text is None:
        raise UserError(f"{path} was not written by torchcaps export: it has no {CARD}")
    try:
        values = json.loads(text)
    except json.JSONDecodeError as error:
        raise UserError(f"{path} is damaged: its {CARD} cannot be read ({error})") from error
    return build(Card, values, f"{path}: {CARD}")


def _without_images(folder: Path, split: Split, side: int = 0) -> LabelledImages:
    raise UserError("an exported file knows its dataset but holds no images of it")
