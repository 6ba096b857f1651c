"""Pictures that come from the page: checked before they are decoded, and made ready for a network."""

from __future__ import annotations

import base64
import binascii
from io import BytesIO
from math import inf, isinf
from pathlib import Path
from typing import NamedTuple

from PIL import Image
from torch import Tensor

from torchcaps.core import UserError
from torchcaps.data import (
    PICTURE_MODES,
    DatasetInfo,
    Deep,
    as_bytes,
    fit_picture,
    is_animation,
    opened_picture,
    without_transparency,
)
from torchcaps.zoo import prepare_digit

MOST_BYTES = 16 << 20  # of an image file
MOST_PIXELS = 40_000_000
_NAME = Path("This file")  # what messages call a picture, whatever its file was named


class Ready(NamedTuple):
    """What a network gets: bytes (1, channels, height, width), and what was done to the picture, in words."""

    image: Tensor
    words: str
    is_photo: bool = False  # an image of a dataset needs no preparation


def decode(text: str) -> bytes:
    """The bytes of a file from base64."""
    if len(text) > 4 * MOST_BYTES // 3 + 4:
        raise UserError(f"This file is larger than {MOST_BYTES >> 20} MB: choose a smaller one.")
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise UserError("The picture did not arrive whole: send it again.") from error


def open_upload(content: bytes, *, is_digit: bool = False) -> tuple[Image.Image, list[str]]:
    """The picture in a file's bytes, grey or RGB, and what was done to it so far.

    That of a digit keeps its clear parts: `prepare_digit` fills them.
    """
    try:
        return _open(content, is_digit=is_digit)
    except UserError as error:
        if "cannot be read as an image" in str(error):
            raise UserError(
                "This file cannot be read as an image: it is damaged, or not a PNG, JPEG, WebP, TIFF or BMP "
                "file; save a HEIC photograph of a phone as JPEG first."
            ) from error
        raise


def _open(content: bytes, *, is_digit: bool) -> tuple[Image.Image, list[str]]:
    pixels = _count_pixels(content)
    if pixels > MOST_PIXELS:
        count = "hundreds of" if isinf(pixels) else f"{pixels / 1e6:.0f}"
        raise UserError(
            f"This picture has {count} megapixels, at most {MOST_PIXELS // 10**6} are taken: make it smaller "
            "and choose it again."
        )
    deep: Deep = "keep" if is_digit else "scale"
    with opened_picture(_NAME, BytesIO(content), deep=deep, may_move=True) as picture:
        steps = ["the first image of an animation"] if is_animation(picture) else []
        return (picture.copy(), steps) if is_digit else _flattened(picture, steps)


def _count_pixels(content: bytes) -> int | float:
    """The pixels that the header of a file states, before it is decoded; 0 where it cannot be read.

    Infinite where there are so many that pillow does not say how many.
    """
    try:
        with Image.open(BytesIO(content)) as picture:
            return picture.width * picture.height
    except Image.DecompressionBombError:
        return inf
    except Exception:  # Pillow raises errors of many classes
        return 0


def _flattened(picture: Image.Image, steps: list[str]) -> tuple[Image.Image, list[str]]:
    """Without transparency: what is clear becomes white, as on the page."""
    opaque = without_transparency(picture)
    if opaque is not picture:
        return opaque.convert("RGB"), [*steps, "clear parts filled with white"]
    if picture.mode in ("1", "L"):
        return picture.convert("L"), [*steps, "a grey picture"]
    return picture.convert("RGB"), steps


def make_ready(content: bytes, info: DatasetInfo, *, is_digit: bool) -> Ready:
    """A file's bytes as a network takes them; digits are found, turned bright on black and centred."""
    picture, steps = open_upload(content, is_digit=is_digit)
    if is_digit:
        prepared = prepare_digit(picture)
        picture = prepared.picture
        steps.append(prepared.words)
    if info.channels not in PICTURE_MODES:
        raise UserError(f"This network wants {info.channels} channels: choose one of its own images.")
    fitted = fit_picture(picture.convert(PICTURE_MODES[info.channels]), info.height, info.width, info.fit)
    if not is_digit and picture.size != fitted.size:
        done = {"crop": "cut and scaled", "pad": "scaled, with bands", "stretch": "stretched"}[info.fit]
        steps.append(f"{done} to {info.width}x{info.height} px")
    return Ready(as_bytes(fitted).unsqueeze(0), ", ".join(steps) or "taken as it is", is_photo=True)
