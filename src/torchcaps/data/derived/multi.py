"""MultiMNIST: two digits of different classes on top of each other (Sabour 2017, section 6)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import torch
from jaxtyping import Int64, UInt8
from torch import Tensor
from torch.nn import functional as F

from torchcaps.core import UserError, generator

from ..api import DatasetInfo, Split
from ..examples import LabelledImages, OverlaidImages, split_validation
from ..family import register_family
from ..split import split_indices
from ..transforms import shift
from .base import derived_info, load_base

PAD = 4  # 28x28 on 36x36
_AT_ONCE = 4096  # pairs that are moved: while they are, they take several times their bytes


class Overlaid(NamedTuple):
    """Images of two digits, the digits alone, and their classes in the same order."""

    images: UInt8[Tensor, "count 1 36 36"]
    digits: UInt8[Tensor, "count 2 36 36"]
    labels: Int64[Tensor, "count 2"]


def overlay_digits(
    data: LabelledImages, count: int, random: torch.Generator, *, shift_by: int = 4
) -> Overlaid:
    """`count` pairs of digits of different classes, each moved on its own, their sum cut at 255.

    Args:
        data: Digits of 28x28 pixels, of at least two classes.
        count: How many pairs; call it again for fresh ones.
        random: A generator on the CPU.
        shift_by: Pixels to each side: 4 in the paper's text, 6 in its released command line.
    """
    labels = data.labels.cpu()
    if not len(labels) or (labels == labels[0]).all():
        raise UserError("overlaid digits need at least two classes; add digits or set data.validation higher")
    first = torch.randint(len(labels), (count,), generator=random)
    second = torch.randint(len(labels), (count,), generator=random)
    while (same := labels[first] == labels[second]).any():
        second[same] = torch.randint(len(labels), (int(same.sum()),), generator=random)
    chosen = torch.stack([first, second], dim=1)
    draws = torch.stack([torch.rand(count, 2, generator=random) for _ in range(2)], dim=1)
    digits = data.images.new_empty(count, 2, *(side + 2 * PAD for side in data.images.shape[2:]))
    images = torch.empty_like(digits[:, :1])
    for start in range(0, count, _AT_ONCE):
        part = slice(start, start + _AT_ONCE)
        padded = F.pad(data.images[chosen[part].flatten().to(data.device)], (PAD,) * 4)
        moved = shift(padded, shift_by, draws[part].flatten(0, 1).to(data.device))
        digits[part] = moved.reshape_as(digits[part])
        one, other = digits[part, :1], digits[part, 1:]
        images[part] = one + other.minimum(255 - one)  # bytes beyond 255 would begin at 0 again
    return Overlaid(images, digits, labels[chosen].to(data.device))


@dataclass(frozen=True, kw_only=True)
class MultiSettings:
    """Which digits are overlaid, and how many pairs there are.

    Attributes:
        base: The dataset of the digits.
        shift: Pixels by which each digit moves at most, to each side.
        train: Pairs to train on.
        test: Pairs to test on.
        seed: Of all pairs.
    """

    base: str = "mnist"
    shift: int = 4
    train: int = 60_000
    test: int = 10_000
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.shift <= 8:
            raise UserError(f"multimnist.shift must lie in 0..8 pixels, got {self.shift}")
        if min(self.train, self.test) < 1:
            raise UserError("multimnist needs at least one pair for training and one for testing")


def read_multi(data_dir: Path, split: Split, *, settings: MultiSettings) -> OverlaidImages:
    """One split; digits of the test split are those of the base's."""
    found = load_base(settings.base, data_dir, split)
    count = settings.train if split == "train" else settings.test
    made = _draw(found, settings, split, count)
    return made.drawn_by(partial(_overlay_anew, found, settings.shift), partial(_divide, found, settings))


def _divide(
    data: LabelledImages, settings: MultiSettings, count: int, fraction: float, seed: int
) -> tuple[OverlaidImages, OverlaidImages]:
    """Pairs that train and pairs that validate, of digits that the others do not show."""
    counts = map(len, split_indices(count, fraction, seed))
    parts = zip(("train", "validation"), split_validation(data, fraction, seed), counts, strict=True)
    train, validation = (
        _draw(digits, settings, name, share).drawn_by(partial(_overlay_anew, digits, settings.shift))
        for name, digits, share in parts
    )
    return train, validation


def _draw(data: LabelledImages, settings: MultiSettings, name: str, count: int) -> OverlaidImages:
    rng = generator(settings.seed, "multimnist", name)
    pairs = overlay_digits(data, count, rng, shift_by=settings.shift)
    return OverlaidImages(pairs.images, pairs.labels, pairs.digits, data.classes)


def _overlay_anew(
    data: LabelledImages, shift_by: int, count: int, random: torch.Generator, device: torch.device
) -> tuple[Tensor, ...]:
    pairs = overlay_digits(data.to(device), count, random, shift_by=shift_by)
    return pairs.images, pairs.labels, pairs.digits


def _describe(settings: MultiSettings) -> DatasetInfo:
    reader = partial(read_multi, settings=settings)
    info = derived_info(settings.base, "multimnist", "two overlaid MNIST digits", PAD, reader)
    twice = tuple(2 * value for value in info.mean), tuple(1.4 * value for value in info.std)
    return replace(
        info,
        mean=twice[0],
        std=twice[1],
        num_train=settings.train,
        num_test=settings.test,
        task="overlap",
        protocol=2,  # in the first, validation pairs showed digits of training pairs
    )


register_family("multimnist", MultiSettings, _describe)
