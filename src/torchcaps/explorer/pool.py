"""Images to choose from: those of the network's own dataset, else digits that are at hand, else drawn ones."""

from __future__ import annotations

from typing import NamedTuple

from torchcaps.core import MissingDataError, UserError
from torchcaps.data import LabelledImages, load_dataset
from torchcaps.data.synthetic import synthetic_images
from torchcaps.parse import some_images
from torchcaps.train import load_labelled

from .subject import Subject

MOST = 600  # images that are kept of a dataset
_DIGITS = "mnist5k"  # comes inside a package, so that it needs no download


class Pool(NamedTuple):
    """Images with their classes, and where they come from, in words."""

    images: LabelledImages
    words: str


def find_images_for(subject: Subject, most: int = MOST) -> Pool:
    """At most so many images, drawn at random but always the same."""
    name = subject.run.recipe.data.name
    try:
        own, _ = load_labelled(subject.run, "test", data_dir=subject.data_dir)
        return Pool(some_images(own, most), f"test images of {name}")
    except MissingDataError:
        pass
    if subject.is_digit:
        try:
            digits = load_dataset(_DIGITS, "test", subject.data_dir)
            assert isinstance(digits, LabelledImages)
            return Pool(some_images(digits, most), f"digits of {_DIGITS} ({name} is not on this machine)")
        except UserError:  # the package they come in is not installed
            pass
    drawn = synthetic_images(subject.info, "test", most)
    return Pool(drawn, f"drawn stand-ins ({name} is not on this machine, and they do not look like it)")
