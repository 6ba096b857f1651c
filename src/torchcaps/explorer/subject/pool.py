"""Images of a dataset: some to choose from, others to compare with."""

from __future__ import annotations

from typing import NamedTuple

import torch

from torchcaps.core import MissingDataError, UserError, generator
from torchcaps.data import LabelledImages, load_dataset, synthetic_images
from torchcaps.train import load_labelled

from .subject import Subject

MOST_COMPARED, MOST_CHOSEN = 600, 200
_DIGITS = "mnist5k"  # comes inside a package, so that it needs no download


class Pool(NamedTuple):
    """Images to choose from, others whose trees are known, and where both come from, in words."""

    to_choose: LabelledImages
    to_compare: LabelledImages
    words: str
    is_drawn: bool = False  # stand-ins, which do not look like their classes


def find_pool(subject: Subject) -> Pool:
    """Images of the network's own dataset, else digits that are at hand, else drawn ones."""
    name = subject.run.recipe.data.name
    try:
        own, _ = load_labelled(subject.run, "test", data_dir=subject.data_dir)
        return _parted(own, f"test images of {name}")
    except MissingDataError:
        pass
    if subject.is_digit:
        try:
            digits = load_dataset(_DIGITS, "test", subject.data_dir)
            assert isinstance(digits, LabelledImages)
            return _parted(digits, f"digits of {_DIGITS} ({name} is not on this machine)")
        except UserError:  # the package they come in is not installed
            pass
    drawn = synthetic_images(subject.info, "test", MOST_COMPARED + MOST_CHOSEN)
    words = f"drawn stand-ins ({name} is not on this machine or has other classes now; they look otherwise)"
    return _parted(drawn, words)._replace(is_drawn=True)


def _parted(images: LabelledImages, words: str) -> Pool:
    """A quarter to choose from and the rest to compare with, at random but always the same."""
    order = torch.randperm(len(images), generator=generator(0, "explorer"))
    order = order[: MOST_COMPARED + MOST_CHOSEN]
    count = max(1, min(MOST_CHOSEN, len(order) // 4))
    chosen, compared = order[:count].sort().values, order[count:]
    return Pool(images.subset(chosen), images.subset(compared if len(compared) else chosen), words)
