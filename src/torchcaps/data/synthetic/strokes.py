"""A stand-in for each dataset that needs no files: same shapes and classes, but drawn strokes."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path

import torch
from jaxtyping import Float
from torch import Tensor

from torchcaps.core import generator

from ..api import DATASETS, DatasetInfo, Split
from ..examples import LabelledImages
from ..readers.affnist import AFFNIST
from ..readers.cifar10 import CIFAR10
from ..readers.idx import FASHION_MNIST, MNIST
from ..readers.imagenette import IMAGENETTE
from ..readers.mnist5k import MNIST5K
from ..readers.smallnorb import SMALLNORB
from ..readers.svhn import SVHN

PREFIX = "synthetic_"
NUM_TRAIN, NUM_TEST = 512, 128
_STROKES = 3


def synthetic_images(info: DatasetInfo, split: Split, count: int) -> LabelledImages:
    """`count` images in the shape of dataset `info`, classes taking turns; the same for the same arguments.

    A class is three strokes. An image turns, moves and tints them and adds noise; a stereo pair is shifted.
    """
    labels = torch.arange(count) % info.num_classes
    strokes = torch.stack([_class_strokes(info.name, number) for number in range(info.num_classes)])
    rng = generator(0, "synthetic", info.name, split)
    pixels = _jittered_coordinates(info, count, rng)
    chunks = (torch.split(part, 32) for part in (*pixels, strokes[labels]))  # each fits a processor's cache
    ink = torch.cat([_draw(*chunk) for chunk in zip(*chunks, strict=True)])
    images = _tint(ink, info, rng)
    images += 0.05 * torch.randn(images.shape, generator=rng)
    return LabelledImages((images.clamp(0, 1) * 255).round().to(torch.uint8), labels, info.classes)


def _class_strokes(name: str, number: int) -> Float[Tensor, "strokes 4"]:
    """End points (x, y, x, y); a stroke begins on the left and ends in the lower half: none is a dot."""
    ends = torch.rand(_STROKES, 4, generator=generator(0, "strokes", name, number)) * 1.4 - 0.7
    ends[:, 0], ends[:, 3] = -ends[:, 0].abs() - 0.1, ends[:, 3].abs() + 0.1
    return ends


def _jittered_coordinates(
    info: DatasetInfo, count: int, rng: torch.Generator
) -> tuple[Float[Tensor, "count eyes height width"], Float[Tensor, "count eyes height width"]]:
    """Where each pixel lies in the frame of the strokes, x and y; a stereo pair has two eyes."""
    rows = torch.linspace(-1, 1, info.height)[:, None]
    columns = torch.linspace(-1, 1, info.width)
    draws = torch.rand(3, count, 1, 1, 1, generator=rng) - 0.5
    angles = draws[0] * (math.pi / 9)
    disparity = torch.tensor([0.0, 0.08] if info.channels == 2 else [0.0]).view(-1, 1, 1)
    across = columns * angles.cos() + rows * angles.sin() + 0.3 * draws[1] + disparity
    down = rows * angles.cos() - columns * angles.sin() + 0.3 * draws[2]
    return across, down.expand_as(across)


def _draw(
    across: Float[Tensor, "count eyes height width"],
    down: Float[Tensor, "count eyes height width"],
    strokes: Float[Tensor, "count strokes 4"],
) -> Float[Tensor, "count eyes height width"]:
    """How much ink of the nearest stroke lies on each pixel."""
    nearest = torch.full_like(across, torch.inf)
    for ends in strokes.unbind(1):
        x, y, end_x, end_y = (value.view(-1, 1, 1, 1) for value in ends.unbind(1))
        step_x, step_y = end_x - x, end_y - y
        position = ((across - x) * step_x + (down - y) * step_y) / (step_x.square() + step_y.square())
        position = position.clamp(0, 1)
        distance = (across - x - position * step_x).square() + (down - y - position * step_y).square()
        nearest = torch.minimum(nearest, distance)
    return (-nearest / 0.012).exp()


def _tint(
    ink: Float[Tensor, "count eyes height width"], info: DatasetInfo, rng: torch.Generator
) -> Float[Tensor, "count channels height width"]:
    strength = 0.7 + 0.3 * torch.rand(len(ink), 1, 1, 1, generator=rng)
    if info.channels == 1:
        return ink * strength
    shape = (len(ink), 1 if info.channels == 2 else 3, 1, 1)
    background = torch.tensor(info.mean).view(-1, 1, 1) + 0.1 * (torch.rand(shape, generator=rng) - 0.5)
    # darker than the background, in a colour of its own
    colour = torch.rand(shape, generator=rng) * 0.4 - 0.5
    return background + ink * strength * colour


def _read_synthetic(data_dir: Path, split: Split, *, original: DatasetInfo) -> LabelledImages:
    drawn = _draw_split(original, split)
    return LabelledImages(drawn.images.clone(), drawn.labels.clone(), drawn.classes)


@lru_cache(maxsize=2)  # a search or a plan of runs reads the same splits for each run
def _draw_split(original: DatasetInfo, split: Split) -> LabelledImages:
    return synthetic_images(original, split, NUM_TRAIN if split == "train" else NUM_TEST)


for _original in (MNIST, AFFNIST, FASHION_MNIST, CIFAR10, SVHN, SMALLNORB, IMAGENETTE, MNIST5K):
    DATASETS.register(PREFIX + _original.name)(
        replace(
            _original,
            name=PREFIX + _original.name,
            title=f"drawn stand-in for {_original.title}",
            num_train=NUM_TRAIN,
            num_test=NUM_TEST,
            licence="made by the library",
            reader=partial(_read_synthetic, original=_original),
            framed_reader=None,
            files=(),
            folders=(),
        )
    )
