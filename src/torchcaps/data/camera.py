"""What a camera in flight does to an image: other colours, motion blur and noise."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from torchcaps.core import UserError

_LUMA = (0.299, 0.587, 0.114)
# luma and two axes of colour (YIQ): a turn around luma changes the hue and keeps the brightness
_TO_YIQ = (_LUMA, (0.5959, -0.2746, -0.3213), (0.2115, -0.5227, 0.3112))


def shift_colours(
    images: Float[Tensor, "batch 3 height width"],
    hue: Float[Tensor, " batch"],
    saturation: Float[Tensor, " batch"],
) -> Float[Tensor, "batch 3 height width"]:
    """Images whose hue is turned by an angle in radians and whose saturation is multiplied by a factor."""
    if images.shape[1] != 3:
        raise UserError(f"hue and saturation need images of 3 channels, got {images.shape[1]}")
    to_yiq = torch.stack([torch.stack([images.new_full((), v) for v in row]) for row in _TO_YIQ])
    cos, sin = saturation * hue.cos(), saturation * hue.sin()
    one, zero = torch.ones_like(cos), torch.zeros_like(cos)
    rows = [(one, zero, zero), (zero, cos, -sin), (zero, sin, cos)]
    turn = torch.stack([torch.stack(row, dim=1) for row in rows], dim=1)  # (batch, 3, 3)
    matrix = torch.linalg.inv(to_yiq) @ turn @ to_yiq
    return torch.einsum("bpq,bqhw->bphw", matrix, images)


def motion_blur(
    images: Float[Tensor, "batch channels height width"],
    length: Float[Tensor, " batch"],
    angle: Float[Tensor, " batch"],
    most: float,
) -> Float[Tensor, "batch channels height width"]:
    """Images averaged along a line of `length` pixels, at most `most`; edges are repeated."""
    longest = max(images.shape[2:])
    if most > longest:  # the memory grows with its square
        raise UserError(f"motion_blur must be at most the {longest} pixels of an image, got {most:g}")
    taps = 2 * math.ceil(most / 2) + 1
    side = taps // 2
    steps = torch.linspace(-0.5, 0.5, 4 * taps, device=images.device)
    x, y = (length[:, None] * part[:, None] * steps + side for part in (angle.cos(), angle.sin()))
    axis = torch.arange(taps, device=images.device)
    # each point of the line shares its weight between its neighbours, as in bilinear interpolation
    near_x, near_y = ((1 - (place[:, :, None] - axis).abs()).clamp(min=0) for place in (x, y))
    kernels = torch.einsum("bsy,bsx->byx", near_y, near_x) / len(steps)
    batch, channels = images.shape[:2]
    padded = F.pad(images, (side, side, side, side), mode="replicate").flatten(0, 1).unsqueeze(0)
    weights = kernels.repeat_interleave(channels, 0).unsqueeze(1).to(images.dtype)
    return F.conv2d(padded, weights, groups=batch * channels).view(images.shape)
