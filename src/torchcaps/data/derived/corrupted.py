"""Corrupted MNIST: digits under noise, blur or occlusion at five strengths, of our own choice."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path

from torchcaps.core import UserError

from ..api import DatasetInfo, Split
from ..corrupt import Corruption, corrupt_images
from ..examples import LabelledImages
from ..family import register_family
from .base import derived_info, load_base


@dataclass(frozen=True, kw_only=True)
class CorruptedSettings:
    """The dataset of the digits, and kind and strength of the change."""

    base: str = "mnist"
    kind: Corruption = "noise"
    strength: int = 3

    def __post_init__(self) -> None:
        if not 1 <= self.strength <= 5:
            raise UserError(f"corrupted_mnist.strength must lie in 1..5, got {self.strength}")


def read_corrupted(data_dir: Path, split: Split, *, settings: CorruptedSettings) -> LabelledImages:
    """One split, every image changed."""
    found = load_base(settings.base, data_dir, split)
    return found.with_images(corrupt_images(found.images, settings.kind, settings.strength))


def _describe(settings: CorruptedSettings) -> DatasetInfo:
    reader = partial(read_corrupted, settings=settings)
    return derived_info(settings.base, "corrupted_mnist", "corrupted MNIST digits", 0, reader)


register_family("corrupted_mnist", CorruptedSettings, _describe)
