"""Expanded MNIST: digits on 40x40 black; a recipe's `augment.shift` of 6 makes every placement."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path

from torch.nn import functional as F

from ..api import DatasetInfo, Split
from ..examples import LabelledImages
from ..family import register_family
from .base import derived_info, load_base

PAD = 6  # 28x28 on 40x40


@dataclass(frozen=True, kw_only=True)
class ExpandedSettings:
    """The digits that are placed."""

    base: str = "mnist"


def read_expanded(data_dir: Path, split: Split, *, settings: ExpandedSettings) -> LabelledImages:
    """One split, digits in the middle."""
    found = load_base(settings.base, data_dir, split)
    return found.with_images(F.pad(found.images, (PAD,) * 4))


def _describe(settings: ExpandedSettings) -> DatasetInfo:
    reader = partial(read_expanded, settings=settings)
    return derived_info(settings.base, "expanded_mnist", "MNIST digits on 40x40 black", PAD, reader)


register_family("expanded_mnist", ExpandedSettings, _describe)
