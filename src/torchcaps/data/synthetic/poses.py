"""Drawn objects of three coloured arms, turned at random: a stand-in for renders with quaternion labels."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from torchcaps.core import generator, random_rotations, rotation_matrices

from ..api import DATASETS, DatasetInfo, Split
from ..examples import PosedImages

NUM_TRAIN, NUM_TEST = 512, 128
_SIDE = 28
_CLASSES = {  # lengths of the red, green and blue arm, along x, y and z
    "even": (0.9, 0.9, 0.9),
    "uneven": (0.95, 0.35, 0.6),
}


def draw_poses(split: Split, count: int) -> PosedImages:
    """`count` objects, classes taking turns, seen from the end of the z axis; the same for each call."""
    rng = generator(0, "synthetic poses", split)
    labels, rotations = torch.arange(count) % len(_CLASSES), random_rotations(count, rng)
    lengths = torch.tensor(list(_CLASSES.values()))[labels]
    tips = rotation_matrices(rotations) * lengths[:, None]  # column k is the tip of arm k
    images = torch.stack([_draw_arm(tips[:, :, arm]) for arm in range(3)], dim=1)
    images += 0.03 * torch.randn(images.shape, generator=rng)
    return PosedImages((images.clamp(0, 1) * 255).round().to(torch.uint8), labels, rotations, tuple(_CLASSES))


def _draw_arm(tips: Float[Tensor, "count 3"]) -> Float[Tensor, "count side side"]:
    """A stroke from the middle to each tip, brighter the nearer the tip is to the viewer."""
    axis = torch.linspace(-1, 1, _SIDE)
    x, y, z = (part.view(-1, 1, 1) for part in tips.unbind(1))
    across, down = axis.view(1, 1, -1), -axis.view(1, -1, 1)
    squared = (x * x + y * y).clamp(min=1e-4)
    place = ((across * x + down * y) / squared).clamp(0, 1)
    distance = (across - place * x).square() + (down - place * y).square()
    return (0.6 + 0.4 * z * place) * (-distance / 0.01).exp()


DATASETS.register("synthetic_poses")(
    DatasetInfo(
        name="synthetic_poses",
        title="drawn objects of three arms, turned at random",
        channels=3,
        height=_SIDE,
        width=_SIDE,
        classes=tuple(_CLASSES),
        mean=(0.03, 0.03, 0.03),
        std=(0.09, 0.08, 0.09),
        num_train=NUM_TRAIN,
        num_test=NUM_TEST,
        licence="made by the library",
        reader=lambda _, split: draw_poses(split, NUM_TRAIN if split == "train" else NUM_TEST),
        task="pose",
    )
)
