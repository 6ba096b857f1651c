"""Where an answer comes from, tried out: parts of the image are covered, and the class loses activation."""

from __future__ import annotations

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

_WINDOW = 4  # parts of a side that the cover takes one of
_PLACES = 9  # along each side
_BATCH = 27


@torch.no_grad()
def covering_map(
    activation_of: Callable[[Tensor], Tensor], image: Float[Tensor, "1 channels height width"]
) -> Float[Tensor, "height width"]:
    """How much of its activation the class loses on average while a pixel is covered; gains count as 0.

    Args:
        activation_of: From a batch of images in [0, 1] to the activation of the class in each.
        image: The cover has its median tone in each channel.
    """
    height, width = image.shape[-2:]
    boxes = [(top, left) for top in _starts(height) for left in _starts(width)]
    size = (max(1, height // _WINDOW), max(1, width // _WINDOW))
    tone = image.flatten(2).median(-1).values[0, :, None, None]
    whole = float(activation_of(image)[0])
    lost, seen = torch.zeros(height, width), torch.zeros(height, width)
    for some in (boxes[start : start + _BATCH] for start in range(0, len(boxes), _BATCH)):
        covered = image.repeat(len(some), 1, 1, 1)
        for number, (top, left) in enumerate(some):
            covered[number, :, top : top + size[0], left : left + size[1]] = tone
        for (top, left), value in zip(some, activation_of(covered).tolist(), strict=True):
            lost[top : top + size[0], left : left + size[1]] += max(0.0, whole - value)
            seen[top : top + size[0], left : left + size[1]] += 1
    return lost / seen.clamp(min=1)


def _starts(side: int) -> list[int]:
    last = side - max(1, side // _WINDOW)
    return sorted({round(last * step / (_PLACES - 1)) for step in range(_PLACES)})
