"""Noise, blur and occlusion of images in [0, 1], at five strengths."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeAlias, get_args

import torch
from jaxtyping import Float, UInt8
from torch import Tensor
from torch.nn import functional as F

from torchcaps.core import UserError, generator, require_choice

Corruption: TypeAlias = Literal["noise", "blur", "occlusion"]
CORRUPTIONS: tuple[Corruption, ...] = get_args(Corruption)
STRENGTHS: dict[str, tuple[float, ...]] = {
    "noise": (0.1, 0.2, 0.3, 0.4, 0.5),  # deviation, of a range of 1
    "blur": (0.5, 1.0, 1.5, 2.0, 3.0),  # deviation of the Gaussian in pixels, at 28 px
    "occlusion": (0.2, 0.3, 0.4, 0.5, 0.6),  # of each side of the image, by a grey square
}
_AT_ONCE = 1024  # images that are blurred: a convolution takes many times their memory
Images = Float[Tensor, "batch channels height width"]


def add_noise(images: Images, deviation: float, random: torch.Generator) -> Images:
    """Images plus normal noise, which is drawn on the CPU and not clipped."""
    return images + deviation * torch.randn(images.shape, generator=random).to(images)


def blur(images: Images, deviation: float) -> Images:
    """Images under a Gaussian of this deviation in pixels, cut at three deviations; zeros lie around them."""
    reach = max(1, int(3 * deviation))
    weights = torch.exp(-0.5 * (torch.arange(-reach, reach + 1).to(images) / deviation).square())
    weights = (weights / weights.sum()).expand(images.shape[1], 1, -1)
    blurred = []
    for part in torch.split(images, _AT_ONCE):
        padded = F.pad(part, (reach,) * 4)
        across = F.conv2d(padded, weights[:, :, None, :], groups=images.shape[1])
        blurred.append(F.conv2d(across, weights[:, :, :, None], groups=images.shape[1]))
    return torch.cat(blurred)


def occlude(images: Images, share: float, random: torch.Generator) -> Images:
    """Images with a grey square over `share` of each side, at a place that is drawn on the CPU."""
    height, width = images.shape[-2:]
    is_hidden = torch.ones(len(images), height, width, dtype=torch.bool, device=images.device)
    for axis, pixels in ((1, height), (2, width)):
        side = round(share * pixels)
        start = torch.randint(pixels - side + 1, (len(images), 1), generator=random).to(images.device)
        place = torch.arange(pixels, device=images.device)
        is_hidden &= ((place >= start) & (place < start + side)).unsqueeze(3 - axis)
    return torch.where(is_hidden.unsqueeze(1), 0.5, images)


_CHANGES: dict[str, Callable[[Tensor, float, torch.Generator], Tensor]] = {
    "noise": add_noise,
    "blur": lambda images, deviation, _: blur(images, deviation * min(images.shape[-2:]) / 28),
    "occlusion": occlude,
}


def corrupt_images(
    images: UInt8[Tensor, "batch channels height width"], kind: str, strength: int
) -> UInt8[Tensor, "batch channels height width"]:
    """The images changed in one way at a strength of 1 to 5, the same each time and on every device."""
    require_choice("corruption", kind, _CHANGES)
    if not 1 <= strength <= 5:
        raise UserError(f"the strength of a corruption lies in 1..5, got {strength}")
    rng = generator(0, "corrupted", kind, strength)
    changed = _CHANGES[kind](images.float() / 255, STRENGTHS[kind][strength - 1], rng)
    return (changed.clamp(0, 1) * 255).round().byte()
