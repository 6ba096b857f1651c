"""Changes that make an image strange, the same each time."""

from __future__ import annotations

from collections.abc import Callable

import torch
from jaxtyping import UInt8
from torch import Tensor

from torchcaps.core import generator
from torchcaps.data import add_noise, blur, occlude

_NOISE = 0.3  # deviation, of a range of 1
_BLUR = 2.0  # deviation of the Gaussian, in pixels
_HIDDEN = 0.4  # of each side of the image, by a grey square

CORRUPTIONS: dict[str, Callable[[Tensor, torch.Generator], Tensor]] = {
    "noise": lambda images, random: add_noise(images, _NOISE, random),
    "blur": lambda images, random: blur(images, _BLUR),
    "occlusion": lambda images, random: occlude(images, _HIDDEN, random),
    "mirrored": lambda images, random: images.flip(-1),
    "inverted": lambda images, random: 1 - images,
}


def corrupt(
    images: UInt8[Tensor, "batch channels height width"], name: str
) -> UInt8[Tensor, "batch channels height width"]:
    """The images changed in one way; numbers are drawn on the CPU, so that every device sees the same."""
    changed = CORRUPTIONS[name](images.float() / 255, generator(0, "corrupt", name))
    return (changed.clamp(0, 1) * 255).round().byte()
