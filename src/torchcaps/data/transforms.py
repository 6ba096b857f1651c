"""Random changes to a batch of images, each image on its own.

Images are floating point, usually in [0, 1]; `shift` takes bytes as well. Where `randomness` is asked for,
give a generator on the images' device, or numbers in [0, 1) that were drawn before, a row per image: then the
function is pure and compiles. No function waits for the device or lets pixel values decide which code runs,
so CUDA graphs can capture it.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int64, Shaped
from torch import Tensor

from torchcaps.core import ImageSize, UserError, sides


def uniform(
    randomness: torch.Generator | Float[Tensor, "batch draws"],
    images: Shaped[Tensor, "batch channels height width"],
    count: int,
) -> Float[Tensor, "batch {count}"]:
    """`count` numbers in [0, 1) for each image: fresh ones from a generator, or the first of those given."""
    if isinstance(randomness, Tensor):
        return randomness[:, :count]
    if randomness.device.type != images.device.type:
        raise UserError(f"the generator is on {randomness.device}, the images are on {images.device}")
    return torch.rand(len(images), count, generator=randomness, device=images.device)


def shift(
    images: Shaped[Tensor, "batch channels height width"],
    limit: int,
    randomness: torch.Generator | Float[Tensor, "batch 2"],
) -> Shaped[Tensor, "batch channels height width"]:
    """Images moved down and right by whole numbers of pixels in -limit..limit; what enters is zero."""
    start = _whole(uniform(randomness, images, 2), 2 * limit + 1)
    padded = F.pad(images, (limit, limit, limit, limit))
    return _windows(padded, 2 * limit - start, (images.shape[2], images.shape[3]))


def shift_in_margins(
    images: Float[Tensor, "batch channels height width"],
    randomness: torch.Generator | Float[Tensor, "batch 2"],
) -> Float[Tensor, "batch channels height width"]:
    """Images moved at random, but never so far that a pixel other than zero leaves the frame."""
    return move_by(images, move_in_margins(images, randomness))


def move_in_margins(
    images: Float[Tensor, "batch channels height width"],
    randomness: torch.Generator | Float[Tensor, "batch 2"],
) -> Int64[Tensor, "batch 2"]:
    """How far down and right `shift_in_margins` moves each image."""
    is_filled = (images != 0).any(1)
    before, after = (
        torch.stack([_first(is_filled.any(2), from_end), _first(is_filled.any(1), from_end)], dim=1)
        for from_end in (False, True)
    )
    return _whole(uniform(randomness, images, 2), before + after + 1) - before


def move_by(
    images: Float[Tensor, "batch channels height width"], move: Int64[Tensor, "batch 2"]
) -> Float[Tensor, "batch channels height width"]:
    """Images moved down and right by whole numbers of pixels, at most their height and width; zeros enter."""
    height, width = images.shape[2:]
    padded = F.pad(images, (width, width, height, height))
    corner = torch.stack([height - move[:, 0], width - move[:, 1]], dim=1)
    return _windows(padded, corner, (height, width))


def random_crop(
    images: Float[Tensor, "batch channels height width"],
    size: ImageSize,
    randomness: torch.Generator | Float[Tensor, "batch 2"],
) -> Float[Tensor, "batch channels rows columns"]:
    """A window at a random place of each image."""
    window = _require_room(images, size)
    draws = uniform(randomness, images, 2)
    rows, columns = (_whole(draws[:, axis], images.shape[2 + axis] - window[axis] + 1) for axis in (0, 1))
    return _windows(images, torch.stack([rows, columns], dim=1), window)


def center_crop(
    images: Float[Tensor, "batch channels height width"], size: ImageSize
) -> Float[Tensor, "batch channels rows columns"]:
    """The window in the middle; where it cannot be exact, half a pixel up and left."""
    height, width = _require_room(images, size)
    top, left = (images.shape[2] - height) // 2, (images.shape[3] - width) // 2
    return images[:, :, top : top + height, left : left + width]


def horizontal_flip(
    images: Float[Tensor, "batch channels height width"],
    randomness: torch.Generator | Float[Tensor, "batch 1"],
) -> Float[Tensor, "batch channels height width"]:
    """Images, each mirrored left to right with a probability of one half."""
    is_flipped = uniform(randomness, images, 1)[:, :, None, None] < 0.5
    return torch.where(is_flipped, images.flip(-1), images)


def jitter(
    images: Float[Tensor, "batch channels height width"],
    randomness: torch.Generator | Float[Tensor, "batch 3"],
    *,
    brightness: float = 0.0,
    gain: float = 0.0,
    contrast: tuple[float, float] | None = None,
) -> Float[Tensor, "batch channels height width"]:
    """Images times 1 ± gain, plus ± brightness, then stretched about each channel's mean by a factor.

    The result is not clipped and may leave [0, 1], as in the recipes that standardise each image afterwards.
    """
    draws = uniform(randomness, images, 3)[:, :, None, None]  # (batch, 3, 1, 1)
    if gain:
        images = images * (1 + gain * (2 * draws[:, 1:2] - 1))
    if brightness:
        images = images + brightness * (2 * draws[:, 0:1] - 1)
    if contrast is None:
        return images
    factor = contrast[0] + (contrast[1] - contrast[0]) * draws[:, 2:3]
    mean = images.mean((2, 3), keepdim=True)
    return (images - mean) * factor + mean


def erase(
    images: Float[Tensor, "batch channels height width"],
    size: int,
    randomness: torch.Generator | Float[Tensor, "batch 2"],
) -> Float[Tensor, "batch channels height width"]:
    """Images with one square, wholly inside the frame at a random place, set to zero."""
    _require_room(images, size)
    draws = uniform(randomness, images, 2)
    inside = []
    for axis in (0, 1):
        length = images.shape[2 + axis]
        first = _whole(draws[:, axis], length - size + 1)[:, None]
        position = torch.arange(length, device=images.device)
        inside.append((position >= first) & (position < first + size))
    is_erased = inside[0][:, None, :, None] & inside[1][:, None, None, :]
    return images.masked_fill(is_erased, 0)


def standardize(
    images: Float[Tensor, "batch channels height width"],
) -> Float[Tensor, "batch channels height width"]:
    """Images with mean 0 and standard deviation 1 over all their pixels and channels.

    The deviation counts as at least 1/sqrt(number of values), so that a flat image becomes zero.
    """
    mean = images.mean((1, 2, 3), keepdim=True)
    deviation = images.std((1, 2, 3), correction=0, keepdim=True)
    return (images - mean) / deviation.clamp(min=images[0].numel() ** -0.5)


def _whole(draws: Float[Tensor, "*any"], count: int | Int64[Tensor, "*any"]) -> Int64[Tensor, "*any"]:
    """Whole numbers in 0..count-1."""
    return (draws * count).floor().long()


def _windows(
    images: Shaped[Tensor, "batch channels height width"],
    corners: Int64[Tensor, "batch 2"],
    size: tuple[int, int],
) -> Shaped[Tensor, "batch channels rows columns"]:
    """From each image the window whose upper left pixel is at `corners` (row, column)."""
    windows = images.unfold(2, size[0], 1).unfold(3, size[1], 1)  # a view of all windows, nothing is copied
    return windows[torch.arange(len(images), device=images.device), :, corners[:, 0], corners[:, 1]]


def _first(is_filled: Tensor, from_end: bool) -> Int64[Tensor, " batch"]:
    """How many entries come before the first true one; an empty row counts as if all of it were in use."""
    ordered = is_filled.flip(1) if from_end else is_filled
    return ordered.long().argmax(1)


def _require_room(images: Tensor, size: ImageSize) -> tuple[int, int]:
    """Height and width of a window that fits; an error where it does not."""
    rows, columns = sides(size)
    height, width = images.shape[2:]
    if not (0 < rows <= height and 0 < columns <= width):
        raise UserError(
            f"a window of {columns}x{rows} pixels does not fit images of {width}x{height}; "
            "pad or resize them first"
        )
    return rows, columns
