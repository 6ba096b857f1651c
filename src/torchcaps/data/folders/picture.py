"""Image files: how one is opened, and how many are read at once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from io import BytesIO
from pathlib import Path
from typing import Literal, TypeAlias

import numpy as np
import torch
from PIL import ExifTags, Image, ImageOps, ImageSequence, UnidentifiedImageError
from torch import Tensor

from torchcaps.core import UserError

from ..api import Frame
from ..fit import fit_picture
from ..lazy_images import FileImages
from .listing import what_it_is
from .unopened import opening, raise_all, unopened

ARRAY_SUFFIX = ".npy"
# what pillow may take a file for, whatever its name; for some others it starts programs, such as Ghostscript
_FORMATS = ("PNG", "JPEG", "WEBP", "TIFF", "BMP", "GIF", "PPM")
_ANIMATED = ("GIF", "PNG", "WEBP")  # formats that hold animations; others hold previews
_ONE_HEADER = threading.Lock()  # Python 3.11 may fail where threads parse headers of arrays at once
GREY_MODES = {"1", "L", "LA"}
MOST_BYTES_IN_MEMORY = 4 << 30  # more are read from their files, batch by batch
PICTURE_MODES = {1: "L", 3: "RGB"}  # of pillow, by the channels of a dataset
Deep: TypeAlias = Literal["refuse", "keep", "scale"]
_BITS, _PHOTOMETRIC = 258, 262  # tags of TIFF
_FAINT = 16  # times darker than white could be: values of 12 bits in files that say 16 are


@contextmanager
def opened_picture(
    path: Path, content: BytesIO | None = None, *, deep: Deep = "refuse", may_move: bool = False
) -> Iterator[Image.Image]:
    """The image at `path`, upright, to be decoded in the block; a damaged one is an error there.

    Where `content` is given, the image is read from it, and `path` is its name in messages. `deep` says what
    becomes of a grey one of more than 8 bits per pixel: it is refused, kept as it is, or scaled to 8 bits
    where it has 16 at most. With `may_move`, the first image of an animation is given.
    """
    try:
        # an open file, because by its name pillow maps a turned TIFF to memory with its sides exchanged
        with (
            path.open("rb") if content is None else content as file,
            Image.open(file, formats=_FORMATS) as image,
        ):
            _check_pages(image, path)
            if is_animation(image) and not may_move:
                raise UserError(f"{path} is an animation; save one image of it as a file of its own")
            _check_mode(image, str(path), deep)
            _set_upright(image)
            yield _in_8_bits(image, str(path), image) if deep == "scale" else image
    except UserError:
        raise
    except UnidentifiedImageError as error:
        raise UserError(f"{path} cannot be read as an image ({what_it_is(path)})") from error
    except Image.DecompressionBombError as error:
        most = 2 * (Image.MAX_IMAGE_PIXELS or 0) // 10**6  # pillow refuses twice its limit
        raise UserError(
            f"{path} has more than {most} megapixels; make it smaller, or cut it into parts"
        ) from error
    except Exception as error:  # pillow raises many kinds for damaged files
        if isinstance(error, OSError) and error.errno is not None:
            raise unopened(path, error) from error
        raise UserError(f"{path} cannot be read as an image ({error})") from error


def is_animation(image: Image.Image) -> bool:
    """Whether an open file holds several images to be shown one after the other."""
    return image.format in _ANIMATED and bool(getattr(image, "is_animated", False))


def _check_pages(image: Image.Image, path: Path) -> None:
    """Raise for a TIFF of several pages, of which the first alone would be read; previews are smaller."""
    if image.format != "TIFF":
        return
    size = image.size
    pages = sum(page.size == size for page in ImageSequence.Iterator(image))
    image.seek(0)
    if pages > 1:
        raise UserError(f"{path} has {pages} pages; save each of them as a file of its own")


def _check_mode(image: Image.Image, name: str, deep: Deep) -> None:
    is_refused = deep == "refuse" or (deep == "scale" and not _has_16_bits(image))
    if image.mode[0] in "IF" and is_refused:  # pillow would cut every value above 255 to white
        raise UserError(
            f"{name} has more than 8 bits per pixel (mode {image.mode}); save it as an 8-bit image first"
        )
    if image.mode == "LAB":  # pillow cannot convert it
        raise UserError(f"{name} has the colours of CIELAB; save it as an RGB image first")


def _set_upright(image: Image.Image) -> None:
    if _is_turned(image):
        ImageOps.exif_transpose(image, in_place=True)


def _has_16_bits(image: Image.Image) -> bool:
    """Whether a grey image has 16 bits per pixel, or fewer that pillow stores as so many."""
    return image.mode.startswith("I;16") or (image.mode == "I" and image.format in ("PNG", "PPM"))


def _in_8_bits(image: Image.Image, name: str, file: Image.Image) -> Image.Image:
    """A grey image of 16 bits in 8, by the depth that its `file` states; others as they are."""
    if image.mode[0] != "I":
        return image
    tags = getattr(file, "tag_v2", {})
    white = 2 ** tags.get(_BITS, (16,))[0] - 1
    levels = np.asarray(image).astype(np.float32)
    brightest = levels.max()
    if 0 < brightest < white / _FAINT:
        raise UserError(
            f"{name} has values up to {brightest:,.0f} where {white:,} is white, and would be almost black "
            "in 8 bits; stretch its values, or save it as an 8-bit image"
        )
    if tags.get(_PHOTOMETRIC) == 0:  # white is 0, which pillow minds in images of 8 bits alone
        levels = white - levels
    return Image.fromarray((levels * (255 / white)).round().astype(np.uint8))


def without_transparency(picture: Image.Image, background: str = "white") -> Image.Image:
    """The picture on white where it has clear parts, as programs show it; others stay as they are."""
    if picture.mode not in ("RGBA", "LA", "PA") and "transparency" not in picture.info:
        return picture
    over = picture.convert("RGBA")
    if over.getchannel("A").getextrema() == (255, 255):
        return picture
    under = Image.new("RGBA", over.size, background)
    return Image.alpha_composite(under, over).convert("L" if picture.mode == "LA" else "RGB")


def _is_turned(image: Image.Image) -> bool:
    """Whether the camera noted that it was held on its side or upside down."""
    if "exif" not in image.info:  # asking further would decode the whole of a PNG
        return False
    try:
        return image.getexif().get(ExifTags.Base.Orientation, 1) != 1
    except Exception:  # a damaged note does not make the pixels unreadable; pillow raises many kinds
        return False


def open_any(path: Path | Image.Image, *, deep: Deep = "refuse") -> Image.Image:
    """The picture in an image file, or in a NumPy file of bytes (height, width) or (height, width, 3).

    One that is open already is copied, and becomes what its file would give. `deep` is that of
    `opened_picture`.
    """
    if isinstance(path, Image.Image):
        _check_mode(path, "the picture", deep)
        picture = path.copy()
        _set_upright(picture)
        return _in_8_bits(picture, "the picture", path) if deep == "scale" else picture
    if path.suffix.lower() == ARRAY_SUFFIX:
        return _open_array(path)
    with opened_picture(path, deep=deep) as picture:
        picture.load()
        return picture.copy()


def _open_array(path: Path) -> Image.Image:
    try:
        with _ONE_HEADER, opening(path):
            array = np.load(path, allow_pickle=False)
    except UserError:
        raise
    except Exception as error:  # numpy raises many kinds for damaged files
        raise UserError(f"{path} cannot be read as a NumPy array ({error})") from error
    if array.dtype == np.bool_:
        array = array.astype(np.uint8)
    if array.dtype.kind in "iu" and array.size and array.min() >= 0 and array.max() <= 255:
        array = array.astype(np.uint8)
    is_picture = array.ndim == 2 or (array.ndim == 3 and array.shape[2] in (1, 3))
    if array.dtype != np.uint8 or not array.size or not is_picture:
        raise UserError(
            f"{path} holds {array.dtype} {array.shape}; an image is an array of whole numbers 0 to 255 of "
            "shape (height, width) or (height, width, 3)"
        )
    return Image.fromarray(array[:, :, 0] if array.ndim == 3 and array.shape[2] == 1 else array)


def mode_and_size(path: Path) -> tuple[str, tuple[int, int]]:
    """Mode, and width and height, of a picture as `read_picture` opens it; 8 bits are not decoded."""
    if path.suffix.lower() == ARRAY_SUFFIX:
        picture = open_any(path)
        return picture.mode, picture.size
    with opened_picture(path, deep="scale") as picture:
        return picture.mode, picture.size


def common_mode(files: Sequence[Path], frame: Frame | None = None) -> str:
    """Greyscale ("L") where all pictures are and may be, else "RGB".

    One message lists those that cannot be read.
    """
    modes, problems = set(), []
    for path in files:
        try:
            modes.add(mode_and_size(path)[0])
        except UserError as error:
            problems.append(str(error))
    raise_all(problems)
    in_colour = frame is not None and frame.in_colour
    return "L" if modes <= GREY_MODES and not in_colour else "RGB"


def as_bytes(picture: Image.Image) -> Tensor:
    """The pixels of a grey or RGB picture as bytes (channels, height, width)."""
    pixels = np.array(picture, dtype=np.uint8)
    return torch.from_numpy(pixels[None] if pixels.ndim == 2 else pixels.transpose(2, 0, 1).copy())


def read_picture(path: Path, mode: str, frame: Frame | None) -> Tensor:
    """An image file as bytes (channels, height, width), in `mode` ("L" or "RGB") and fitted to `frame`."""
    picture = open_any(path, deep="scale")
    if mode == "L" and picture.mode not in GREY_MODES:
        raise UserError(
            f"{path} is stored in colour (mode {picture.mode}), but all training images are greyscale; "
            "save it as a greyscale image"
        )
    picture = without_transparency(picture).convert(mode)
    return as_bytes(picture if frame is None else fit_picture(picture, *frame[:3]))


def read_pictures(files: Sequence[Path], read: Callable[[Path], Tensor]) -> Tensor | FileImages:
    """All files by `read`, as one tensor; where they would not fit in memory, as images read when needed.

    Every file is read once, by several threads. One message lists all that cannot be read.
    """
    first_path, first = _first_readable(files, read)
    is_small = first.numel() * len(files) <= MOST_BYTES_IN_MEMORY
    images = torch.empty(len(files), *first.shape, dtype=torch.uint8) if is_small else None

    def read_one(number: int) -> str:
        try:
            image = read(files[number])
            _check_size(image, first, files[number], first_path)
        except UserError as error:
            return str(error)
        if images is not None:
            images[number] = image
        return ""

    with ThreadPoolExecutor() as threads:  # pillow decodes and resizes without holding up other threads
        problems = [words for words in threads.map(read_one, range(len(files))) if words]
    raise_all(problems)
    return FileImages(files, read) if images is None else images


def _first_readable(files: Sequence[Path], read: Callable[[Path], Tensor]) -> tuple[Path, Tensor]:
    for path in files:
        with suppress(UserError):  # reported with all others
            return path, read(path)
    return files[0], torch.empty(0, 0, 0)


def _check_size(image: Tensor, first: Tensor, path: Path, first_path: Path) -> None:
    if image.shape != first.shape:
        raise UserError(
            f"{path} has {image.shape[2]}x{image.shape[1]} pixels, but {first_path} has "
            f"{first.shape[2]}x{first.shape[1]}; give a size to bring all images to, as in folder:PATH@64"
        )
