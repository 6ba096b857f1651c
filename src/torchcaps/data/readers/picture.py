"""One image file, opened so that a wrong one is explained."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from PIL import ExifTags, Image, ImageOps

from torchcaps.core import MissingDataError, UserError


def middle_square(picture: Image.Image, side: int) -> Image.Image:
    """The largest square in the middle of a picture, resized to `side` pixels."""
    short = min(picture.size)
    left, top = ((length - short) / 2 for length in picture.size)
    box = (left, top, left + short, top + short)
    return picture.resize((side, side), Image.Resampling.BILINEAR, box)


@contextmanager
def opened_picture(path: Path) -> Iterator[Image.Image]:
    """The image at `path`, upright, to be decoded in the block; a damaged or a deep one is an error there."""
    try:
        with Image.open(path) as image:
            if image.mode[0] in "IF":  # pillow would cut every value above 255 to white
                raise UserError(
                    f"{path} has more than 8 bits per pixel (mode {image.mode}); convert it first"
                )
            if _is_turned(image):
                ImageOps.exif_transpose(image, in_place=True)
            yield image
    except UserError:
        raise
    except FileNotFoundError as error:
        raise MissingDataError(f"no image at {path}") from error
    except Exception as error:  # pillow raises many kinds for damaged files
        raise UserError(f"{path} cannot be read as an image ({error})") from error


def _is_turned(image: Image.Image) -> bool:
    """Whether the camera noted that it was held on its side or upside down."""
    if "exif" not in image.info:  # asking further would decode the whole of a PNG
        return False
    try:
        return image.getexif().get(ExifTags.Base.Orientation, 1) != 1
    except Exception:  # a damaged note does not make the pixels unreadable; pillow raises many kinds
        return False
