"""Drawn images with masks: bright ellipses and boxes on a cloudy background, at any size."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn import functional as F

from torchcaps.core import generator

from ..api import DATASETS, DatasetInfo, Frame, Split
from ..examples import MaskedImages

NUM_TRAIN, NUM_TEST = 200, 50
_SIDE = 64
_OWN = Frame(_SIDE, _SIDE)
_SHAPES = 2  # in each image
_CLOUD = 5  # knots along each side of the background


def draw_masks(split: Split, count: int, frame: Frame, classes: tuple[str, ...]) -> MaskedImages:
    """`count` images with masks, the same for the same arguments.

    Each has two shapes of random place, size and turn. With one class they are ellipses, with two one is an
    ellipse and one a box, which lies on top.
    """
    rng = generator(0, "synthetic masks", split, frame.height, frame.width)
    knots = torch.rand(count, 1, _CLOUD, _CLOUD, generator=rng)
    images = 0.4 * F.interpolate(knots, frame[:2], mode="bicubic", align_corners=True)
    masks = torch.zeros(count, 1, *frame[:2], dtype=torch.uint8)
    for number in range(_SHAPES):
        label = number % len(classes) + 1
        inside = _inside(count, frame, rng, is_box=label == 2).unsqueeze(1)
        brightness = 0.5 + 0.3 * torch.rand(count, 1, 1, 1, generator=rng)
        images = torch.where(inside, brightness, images)
        masks.masked_fill_(inside, label)
    images = images + 0.05 * torch.randn(images.shape, generator=rng)
    return MaskedImages((images.clamp(0, 1) * 255).round().to(torch.uint8), masks, classes)


def _inside(
    count: int, frame: Frame, rng: torch.Generator, *, is_box: bool
) -> Bool[Tensor, "count height width"]:
    """Where a shape lies; coordinates run from -1 to 1 along the shorter side."""
    shorter = min(frame.height, frame.width)
    down, across = (
        (torch.arange(length) - (length - 1) / 2) * (2 / shorter) for length in (frame.height, frame.width)
    )
    draws: Float[Tensor, "5 count 1 1"] = torch.rand(5, count, 1, 1, generator=rng)
    angle, radii = torch.pi * draws[0], 0.15 + 0.25 * draws[1:3]
    x, y = across - (draws[3] - 0.5), down[:, None] - (draws[4] - 0.5)
    along = (x * angle.cos() + y * angle.sin()) / radii[0]
    aside = (y * angle.cos() - x * angle.sin()) / radii[1]
    return torch.maximum(along.abs(), aside.abs()) < 0.9 if is_box else along.square() + aside.square() < 1


def _read(
    data_dir: Path,
    split: Split,
    frame: Frame = _OWN,
    *,
    classes: tuple[str, ...],
) -> MaskedImages:
    del data_dir
    return draw_masks(split, NUM_TRAIN if split == "train" else NUM_TEST, frame, classes)


for _name, _classes in (("synthetic_masks", ("object",)), ("synthetic_shapes", ("ellipse", "box"))):
    DATASETS.register(_name)(
        DatasetInfo(
            name=_name,
            title=f"drawn images with masks of {' and '.join(_classes)}",
            channels=1,
            height=_SIDE,
            width=_SIDE,
            classes=_classes,
            mean=(0.245,),
            std=(0.17,),
            num_train=NUM_TRAIN,
            num_test=NUM_TEST,
            licence="made by the library",
            reader=partial(_read, classes=_classes),
            framed_reader=partial(_read, classes=_classes),
            task="segmentation",
        )
    )
