"""The card of a dataset: it says how to prepare an image as in training when the dataset is gone."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TypeVar

from torchcaps.core import MissingDataError, Plain, UserError, build_dataclass
from torchcaps.data import DatasetInfo, Examples, Fit, Split
from torchcaps.data.folders import composed

SomeCard = TypeVar("SomeCard", bound="DataCard")


@dataclass(frozen=True, kw_only=True)
class DataCard:
    """What must be done to an image before a network sees it, and what its classes are called.

    An image is read with `channels` channels, brought to `height` x `width` by the rule `fit`, scaled to
    [0, 1] and then treated as the recipe says, with `mean` and `std` per channel. `listing` tells whether the
    training files of a folder are still the same.
    """

    classes: tuple[str, ...]
    mean: tuple[float, ...]
    std: tuple[float, ...]
    channels: int
    height: int
    width: int
    fit: Fit
    task: str = "classification"
    listing: str = ""

    @classmethod
    def from_plain(cls: type[SomeCard], values: object, where: str) -> SomeCard:
        """From the mapping in a file."""
        card = build_dataclass(cls, values, where)
        card.check(where)
        return replace(card, classes=tuple(map(composed, card.classes)))

    def check(self, where: str) -> None:
        """Raise where images cannot be prepared by this card."""
        if min(self.channels, self.height, self.width) < 1:
            raise UserError(f"{where}: channels, height and width must be at least 1")
        if not len(self.mean) == len(self.std) == self.channels:
            raise UserError(f"{where}: mean and std must have a number for each of {self.channels} channels")
        if min(self.std) <= 0:
            raise UserError(f"{where}: std divides the images and must be positive, got {list(self.std)}")

    def describe(self, name: str) -> DatasetInfo:
        """The dataset called `name` as far as the card knows it, without its images."""
        return DatasetInfo(
            name=name,
            title=name,
            num_train=0,
            num_test=0,
            licence="",
            reader=_without_images,
            **_card_fields(self),
        )


def card_of(info: DatasetInfo) -> DataCard:
    """The card of a dataset."""
    return DataCard(**_card_fields(info))


def _card_fields(known: DataCard | DatasetInfo) -> Plain:
    """What a card and a dataset both say, by the same names."""
    return {field.name: getattr(known, field.name) for field in fields(DataCard)}


def _without_images(folder: Path, split: Split) -> Examples:
    raise MissingDataError("what is known of this dataset is its card alone, which holds no images")
