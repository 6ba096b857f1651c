"""Changes that make an image strange, the same each time."""

from __future__ import annotations

from collections.abc import Callable

import torch
from jaxtyping import UInt8
from torch import Tensor
from torch.nn import functional as F

from torchcaps.core.errors import UserError
from torchcaps.core.seeding import generator

_NOISE = 0.3  # deviation, of a range of 1
_BLUR = 2.0  # deviation of the Gaussian, in pixels
_HIDDEN = 0.4  # of each side of the image, by a grey square


def _noise(images: Tensor, random: torch.Generator) -> Tensor:
    return images + _NOISE * torch.randn(images.shape, generator=random).to(images)


def _blur(images: Tensor, random: torch.Generator) -> Tensor:
    reach = int(3 * _BLUR)
    weights = torch.exp(-0.5 * (torch.arange(-reach, reach + 1).to(images) / _BLUR).square())
    weights = (weights / weights.sum()).expand(images.shape[1], 1, -1)
    padded = F.pad(images, (reach,) * 4)
    across = F.conv2d(padded, weights[:, :, None, :], groups=images.shape[1])
    return F.conv2d(across, weights[:, :, :, None], groups=images.shape[1])


def _occlude(images: Tensor, random: torch.Generator) -> Tensor:
    height, width = images.shape[-2:]
    is_hidden = torch.ones(len(images), height, width, dtype=torch.bool, device=images.device)
    for axis, pixels in ((1, height), (2, width)):
        side = round(_HIDDEN * pixels)
        start = torch.randint(pixels - side + 1, (len(images), 1), generator=random).to(images.device)
        place = torch.arange(pixels, device=images.device)
        is_hidden &= ((place >= start) & (place < start + side)).unsqueeze(3 - axis)
    return torch.where(is_hidden.unsqueeze(1), 0.5, images)


CORRUPTIONS: dict[str, Callable[[Tensor, torch.Generator], Tensor]] = {
    "noise": _noise,
    "blur": _blur,
    "occlusion": _occlude,
    "mirrored": lambda images, random: images.flip(-1),
    "inverted": lambda images, random: 1 - images,
}


def corrupt(
    images: UInt8[Tensor, "batch channels height width"], name: str, seed: int = 0
) -> UInt8[Tensor, "batch channels height width"]:
    """The images changed in one way; numbers are drawn on the CPU, so that every device sees the same."""
    if name not in CORRUPTIONS:
        raise UserError(f"a corruption is one of {', '.join(CORRUPTIONS)}, got {name!r}")
    changed = CORRUPTIONS[name](images.float() / 255, generator(seed, "corrupt", name))
    return (changed.clamp(0, 1) * 255).round().byte()
