"""affNIST-style digits: random affine versions of MNIST in the ranges that affNIST publishes, from a seed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import torch
from jaxtyping import UInt8
from torch import Tensor
from torch.nn import functional as F

from torchcaps.core import UserError, generator

from ..api import DatasetInfo, Split
from ..examples import VersionedImages
from ..family import register_family
from ..transforms import shift_in_margins
from ..warp import AffineLimits, affine
from .base import derived_info, load_base
from .expanded import PAD

RANGES = AffineLimits(rotation=20.0, shear=0.2, scale=0.2)  # affNIST's, of degrees, pixels per pixel, factors
_AT_ONCE = 1024


@dataclass(frozen=True, kw_only=True)
class AffnistStyleSettings:
    """Which digits are changed, and how often.

    Attributes:
        base: The dataset of the digits.
        copies: Versions of each digit; affNIST has 32.
        seed: Of all versions.
    """

    base: str = "mnist"
    copies: int = 1
    seed: int = 0

    def __post_init__(self) -> None:
        if not 1 <= self.copies <= 32:
            raise UserError(f"affnist_style.copies must lie in 1..32, got {self.copies}")


def affine_versions(
    images: UInt8[Tensor, "count 1 28 28"], random: torch.Generator
) -> UInt8[Tensor, "count 1 40 40"]:
    """Digits under one random affine map each, then moved at random so that nothing leaves the frame."""
    made = []
    for part in torch.split(images, _AT_ONCE):
        padded = F.pad(part, (PAD,) * 4).float() / 255
        turned = (affine(padded, RANGES, random) * 255).round() / 255  # what a byte cannot hold is black
        made.append((shift_in_margins(turned, random) * 255).round().byte())
    return torch.cat(made)


def read_affnist_style(data_dir: Path, split: Split, *, settings: AffnistStyleSettings) -> VersionedImages:
    """One split: all digits once, then all of them again, `copies` times."""
    found = load_base(settings.base, data_dir, split)
    versions = [
        affine_versions(found.images, generator(settings.seed, "affnist style", split, copy))
        for copy in range(settings.copies)
    ]
    labels, origins = (part.repeat(settings.copies) for part in (found.labels, torch.arange(len(found))))
    return VersionedImages(torch.cat(versions), labels, origins, found.classes)


def _describe(settings: AffnistStyleSettings) -> DatasetInfo:
    reader = partial(read_affnist_style, settings=settings)
    info = derived_info(settings.base, "affnist_style", "affNIST-style digits", PAD, reader)
    copies = settings.copies
    return replace(info, num_train=copies * info.num_train, num_test=copies * info.num_test)


register_family("affnist_style", AffnistStyleSettings, _describe)
