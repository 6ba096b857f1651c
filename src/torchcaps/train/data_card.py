"""What is left of a dataset when its files are gone: enough to read an image as those of training were."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from torchcaps.core.errors import MissingDataError
from torchcaps.data import DatasetInfo, LabelledImages, Split


@dataclass(frozen=True, kw_only=True)
class DataCard:
    """What must be done to an image before a network sees it, and what its classes are called.

    An image is read with `channels` channels, stretched or, if `is_cropped`, cropped to the middle and
    brought to `height` x `width`, scaled to [0, 1] and then treated as the recipe says, with `mean` and `std`
    per channel.
    """

    classes: tuple[str, ...]
    mean: tuple[float, ...]
    std: tuple[float, ...]
    channels: int
    height: int
    width: int
    is_cropped: bool = False

    def describe(self, name: str) -> DatasetInfo:
        """The dataset called `name` as far as the card knows it, without its images."""
        return DatasetInfo(
            name=name,
            title=name,
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


def card_of(info: DatasetInfo) -> DataCard:
    """The card of a dataset."""
    return DataCard(
        classes=info.classes,
        mean=info.mean,
        std=info.std,
        channels=info.channels,
        height=info.height,
        width=info.width,
        is_cropped=info.sized_reader is not None,
    )


def _without_images(folder: Path, split: Split, side: int = 0) -> LabelledImages:
    raise MissingDataError("what is known of this dataset is its card alone, which holds no images")
