"""Nodule probabilities of a whole volume: windows over the lungs, blended where they overlap."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Float16, Shaped
from torch import Tensor
from torch.nn import functional as F

from torchcaps.train import has_native_bf16

from ..volume import window
from .lungs import lung_box, lung_field
from .slice_network import SliceNetwork

SLAB = 8  # neighbouring slices that share a box; not a setting, so that batches change nothing but time
_MARGIN = 24  # pixels around the lungs, for nodules at the wall and for what they lie in
_PIXELS_AT_ONCE = {"cuda": 1 << 21}
_ON_CPU = 1 << 15  # two windows of 128 pixels: more fall out of the cache
_NARROWNESS = 8  # deviations of the blending weights in a window


@dataclass(frozen=True, kw_only=True)
class Windows:
    """How slices are cut up.

    The box around the lungs is seen in one window where it fits: networks are fully convolutional, and what
    overlaps is computed twice.

    Attributes:
        size: Longest side of a window in pixels.
        overlap: Part of a window that the next one sees again, at least.
        pixels_at_once: Of a batch; None chooses by device. It changes memory and time alone.
    """

    size: int = 512
    overlap: float = 0.25
    pixels_at_once: int | None = None


@torch.inference_mode()
def segment_volume(
    network: SliceNetwork,
    hounsfield: Shaped[np.ndarray, "slices rows columns"],
    windows: Windows | None = None,
    *,
    on_slices: Callable[[int, int], None] = lambda done, planned: None,
) -> Float16[np.ndarray, "slices rows columns"]:
    """The probability of a nodule at each voxel; 0 far from the lungs, where nothing was looked at.

    Memory beside the two volumes is that of one slab of slices and one batch of windows.

    Args:
        network: Of single slices.
        hounsfield: The volume.
        windows: How slices are cut up.
        on_slices: Told after each slab how many slices are done, and how many there are.
    """
    windows = windows or Windows()
    found = np.zeros(hounsfield.shape, np.float16)
    field = lung_field(hounsfield)
    for start in range(0, len(hounsfield), SLAB):
        slab = hounsfield[start : start + SLAB]
        box = lung_box(field[start : start + SLAB], slab.shape[1:], _MARGIN)
        if box is not None:
            rows, columns = slice(box.top, box.bottom), slice(box.left, box.right)
            part = _segment_slab(network, window(slab[:, rows, columns]), windows)
            found[start : start + SLAB, rows, columns] = part
        on_slices(start + len(slab), len(hounsfield))
    return found


def _segment_slab(
    network: SliceNetwork, grey: Float[np.ndarray, "slices rows columns"], windows: Windows
) -> Float[np.ndarray, "slices rows columns"]:
    """Probabilities of some slices, all of them cut up alike."""
    height, width = grey.shape[1:]
    images = _padded(torch.from_numpy(grey).unsqueeze(1), network.step).to(network.device)
    tops, size_down = _places(images.shape[2], windows, network.step)
    lefts, size_across = _places(images.shape[3], windows, network.step)
    weight = _blending_weight(size_down, size_across).to(network.device)
    total, weights = (torch.zeros(images.shape, device=network.device) for _ in range(2))
    corners = list(product(range(len(images)), tops, lefts))
    for some in _batches(corners, size_down * size_across, windows, network.device):
        cut = torch.stack(
            [images[i, :, top : top + size_down, left : left + size_across] for i, top, left in some]
        )
        with native_bf16(network.device):
            answers = network(cut).float()
        for answer, (i, top, left) in zip(answers, some, strict=True):
            area = (i, slice(None), slice(top, top + size_down), slice(left, left + size_across))
            total[area] += weight * answer
            weights[area] += weight
    return (total / weights)[:, 0, :height, :width].cpu().numpy()


def _padded(images: Tensor, step: int) -> Tensor:
    """Images whose sides are multiples of `step`; what is added repeats the last row and column."""
    down, across = (-side % step for side in images.shape[2:])
    return F.pad(images, (0, across, 0, down), mode="replicate") if down or across else images


def _places(side: int, windows: Windows, step: int) -> tuple[list[int], int]:
    """Where windows begin along one side, and how long they are: evenly spread, the last at the end."""
    size = min(side, max(step, windows.size // step * step))
    stride = max(step, int(size * (1 - windows.overlap)))
    count = 1 + -(-(side - size) // stride)
    return [round(number * (side - size) / max(1, count - 1)) for number in range(count)], size


def _batches(
    corners: list[tuple[int, int, int]], pixels: int, windows: Windows, device: torch.device
) -> Iterator[list[tuple[int, int, int]]]:
    at_once = windows.pixels_at_once or _PIXELS_AT_ONCE.get(device.type, _ON_CPU)
    batch = max(1, at_once // pixels)
    for start in range(0, len(corners), batch):
        yield corners[start : start + batch]


def _blending_weight(height: int, width: int) -> Float[Tensor, "height width"]:
    """A bell over a window; at its edges, where a network sees least around, it counts least."""
    bells = []
    for side in (height, width):
        offset = torch.arange(side, dtype=torch.float64) - (side - 1) / 2
        bells.append((-0.5 * (offset * _NARROWNESS / side) ** 2).exp())
    return torch.outer(*bells).float()


def native_bf16(device: torch.device) -> AbstractContextManager[Any]:
    """Products in bfloat16 where the processor has instructions for them, elsewhere in float32."""
    return torch.autocast(device.type, torch.bfloat16) if has_native_bf16(device) else nullcontext()
