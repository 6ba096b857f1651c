"""How a picture of any size becomes one of a given size, and how a mask finds its way back."""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias, get_args

from PIL import Image

from torchcaps.core import require_choice

Fit: TypeAlias = Literal["crop", "pad", "stretch"]
FITS: tuple[Fit, ...] = get_args(Fit)


class _Boxes(NamedTuple):
    """The used part of a picture, and the part of the result that it fills: left, top, right, bottom."""

    source: tuple[float, float, float, float]
    target: tuple[int, int, int, int]


def fit_picture(
    picture: Image.Image, height: int, width: int, fit: Fit = "crop", *, is_mask: bool = False
) -> Image.Image:
    """A picture of `height` x `width`.

    Args:
        picture: Of any size.
        height: In pixels.
        width: In pixels.
        fit: "crop" keeps the middle part of the wanted shape, "pad" keeps all of it between bands of zeros,
            "stretch" keeps all of it and changes its proportions.
        is_mask: Take the nearest pixel instead of mixing neighbours: class numbers have no mean.
    """
    if picture.size == (width, height):
        return picture
    boxes = _boxes(picture.size, (width, height), fit)
    method = Image.Resampling.NEAREST if is_mask else Image.Resampling.BILINEAR
    left, top, right, bottom = boxes.target
    part = picture.resize((right - left, bottom - top), method, boxes.source)
    if part.size == (width, height):
        return part
    whole = Image.new(picture.mode, (width, height))
    whole.paste(part, (left, top))
    return whole


def undo_fit(mask: Image.Image, height: int, width: int, fit: Fit = "crop") -> Image.Image:
    """A mask of a picture that `fit_picture` brought to the mask's size, at the picture's own size.

    What a crop left out of sight is background.
    """
    if mask.size == (width, height):
        return mask
    boxes = _boxes((width, height), mask.size, fit)
    left, top, right, bottom = (round(side) for side in boxes.source)
    seen = mask.crop(boxes.target).resize((right - left, bottom - top), Image.Resampling.NEAREST)
    whole = Image.new(mask.mode, (width, height))
    whole.paste(seen, (left, top))
    return whole


def _boxes(size: tuple[int, int], wanted: tuple[int, int], fit: Fit) -> _Boxes:
    """Sizes are (width, height), as pillow has them."""
    require_choice("fit", fit, FITS)
    (width, height), (new_width, new_height) = size, wanted
    whole, all_of_it = (0.0, 0.0, float(width), float(height)), (0, 0, new_width, new_height)
    if fit == "crop":
        across, down = float(width), float(height)
        if width * new_height <= height * new_width:
            down = width * new_height / new_width
        else:
            across = height * new_width / new_height
        left, top = (width - across) / 2, (height - down) / 2
        return _Boxes((left, top, left + across, top + down), all_of_it)
    if fit == "pad":
        scale = min(new_width / width, new_height / height)
        across, down = max(1, round(scale * width)), max(1, round(scale * height))
        left, top = (new_width - across) // 2, (new_height - down) // 2
        return _Boxes(whole, (left, top, left + across, top + down))
    return _Boxes(whole, all_of_it)
