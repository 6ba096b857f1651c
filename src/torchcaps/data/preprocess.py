"""What happens to every image before a network sees it, in training and in evaluation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from jaxtyping import Float, Shaped, UInt8
from torch import Tensor

from torchcaps.core import ImageSize, UserError, require_choice, sides

from .api import LONGEST_SIDE, DatasetInfo
from .augment import Augment, augment_pairs
from .examples import Mode
from .transforms import center_crop, standardize


@dataclass(frozen=True, kw_only=True)
class Preprocess:
    """How images are brought to the size and range that a network expects; sizes in pixels, 0 is off.

    Attributes:
        resize: Both sides, or height and width, by antialiased bilinear interpolation.
        pad: Zeros on each side, after resizing.
        center_crop: The middle window, where a random crop has not already made it that small.
        normalize: "dataset" subtracts the mean of the dataset and divides by its deviation, "image"
            those of each image; "none" keeps [0, 1].
    """

    resize: ImageSize = 0
    pad: int = 0
    center_crop: ImageSize = 0
    normalize: Literal["dataset", "none", "image"] = "dataset"

    def __post_init__(self) -> None:
        for name in ("resize", "pad", "center_crop"):
            size = getattr(self, name)
            if min(sides(size)) < 0 or max(sides(size)) > LONGEST_SIDE:
                raise UserError(
                    f"preprocess.{name} must lie between 0 and {LONGEST_SIDE:,} pixels, got {size}"
                )
        require_choice("preprocess.normalize", self.normalize, ("dataset", "none", "image"))


def preprocess(
    images: Shaped[Tensor, "batch channels height width"], settings: Preprocess, info: DatasetInfo
) -> Float[Tensor, "batch channels new_height new_width"]:
    """Images ready for a network: `resize_and_crop`, then `normalize`."""
    return normalize(resize_and_crop(images, settings), settings, info)


def resize_and_crop(
    images: Shaped[Tensor, "batch channels height width"], settings: Preprocess
) -> Float[Tensor, "batch channels new_height new_width"]:
    """Images in [0, 1] at their final size, without random changes.

    This is what a decoder reconstructs; `normalize` makes of it what the network sees.
    """
    return resize_and_crop_pairs(images, None, settings)[0]


def resize_and_crop_pairs(
    images: Shaped[Tensor, "batch channels height width"],
    masks: Shaped[Tensor, "batch height width"] | None,
    settings: Preprocess,
    changes: Augment | None = None,
    randomness: torch.Generator | Float[Tensor, "batch draws"] | None = None,
) -> tuple[Tensor, Tensor | None]:
    """`resize_and_crop` with random changes where `changes` and `randomness` are given.

    Masks of class numbers, if there are any, keep to their images.
    """
    images = to_unit(images)
    drawn = None if masks is None else masks.unsqueeze(1).float()
    size = sides(settings.resize)
    if settings.resize and images.shape[2:] != size:
        images = F.interpolate(images, size, mode="bilinear", antialias=True, align_corners=False)
        drawn = None if drawn is None else F.interpolate(drawn, size, mode="nearest-exact")
    if settings.pad:
        margins = (settings.pad,) * 4
        images, drawn = F.pad(images, margins), None if drawn is None else F.pad(drawn, margins)
    if changes is not None and randomness is not None:
        images, drawn = augment_pairs(images, drawn, changes, randomness)
    if settings.center_crop:
        images = center_crop(images, settings.center_crop)
        drawn = None if drawn is None else center_crop(drawn, settings.center_crop)
    return images, None if drawn is None else drawn[:, 0].to(torch.uint8)


def undo_resize_and_crop(
    maps: Shaped[Tensor, "batch channels height width"], settings: Preprocess, size: tuple[int, int]
) -> Shaped[Tensor, "batch channels old_height old_width"]:
    """Maps of images that `resize_and_crop` made, laid over the images of `size` that it was given.

    Margins are cut off, and what a crop left out of sight is zero. Maps have the height and width of `size`,
    or others in the same proportion.
    """
    stored = sides(settings.resize) if settings.resize else size
    if settings.pad or settings.center_crop:
        edges = []
        for side, seen in zip(reversed(stored), reversed(maps.shape[2:]), strict=True):
            start = (side + 2 * settings.pad - seen) // 2 - settings.pad
            edges += [start, side - seen - start]
        maps = F.pad(maps, edges)
    is_in_proportion = stored[0] * size[1] == stored[1] * size[0]
    return maps if is_in_proportion else F.interpolate(maps, size, mode="nearest-exact")


def resize_bytes(
    pictures: UInt8[Tensor, "batch channels height width"], mode: Mode, size: tuple[int, int]
) -> UInt8[Tensor, "batch channels new_height new_width"]:
    """Stored pictures at another size: `mode` "nearest" keeps class numbers, "bilinear" mixes neighbours."""
    if mode == "nearest":
        return F.interpolate(pictures.float(), size, mode="nearest-exact").byte()
    resized = F.interpolate(to_unit(pictures), size, mode="bilinear", antialias=True, align_corners=False)
    return resized.mul(255).round().byte()


def to_unit(
    images: Shaped[Tensor, "batch channels height width"],
) -> Float[Tensor, "batch channels height width"]:
    """8-bit images as float32 in [0, 1]; floating point images as they are."""
    if images.is_floating_point():
        return images
    if images.dtype != torch.uint8:
        raise UserError(f"images must be uint8 or floating point, got {images.dtype}")
    return images.float() / 255


def normalize(
    images: Float[Tensor, "batch channels height width"], settings: Preprocess, info: DatasetInfo
) -> Float[Tensor, "batch channels height width"]:
    """Images in [0, 1] scaled by the dataset's mean and deviation, by their own, or not at all."""
    if settings.normalize == "none":
        return images
    if settings.normalize == "image":
        return standardize(images)
    if images.shape[1] != len(info.mean):
        raise UserError(f"{info.name} has {len(info.mean)} channels, the images have {images.shape[1]}")
    return (images - _per_channel(info.mean, images)) / _per_channel(info.std, images)


def _per_channel(values: tuple[float, ...], images: Tensor) -> Float[Tensor, "channels 1 1"]:
    # filled on the device: a copy from the host would wait, and cannot be captured in a CUDA graph
    return torch.stack([images.new_full((1, 1), value) for value in values])
