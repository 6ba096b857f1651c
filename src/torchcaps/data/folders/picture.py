"""Image files: which there are, how one is opened, and how many are read at once."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from glob import glob, has_magic
from io import BytesIO
from pathlib import Path

import numpy as np
import torch
from PIL import ExifTags, Image, ImageOps, ImageSequence, UnidentifiedImageError
from torch import Tensor

from torchcaps.core import MissingDataError, UserError

from ..api import Frame
from ..fit import fit_picture
from ..lazy_images import FileImages
from .unopened import opening, unopened

SUFFIXES = {".png", ".jpg", ".jpeg", ".webp", ".tif", ".tiff", ".bmp"}
ARRAY_SUFFIX = ".npy"
OF_PHONES = {".heic", ".heif", ".avif"}
_HEIF_BRANDS = {b"heic", b"heix", b"hevc", b"heim", b"heis", b"mif1", b"msf1"}  # ISO 23008-12
_OF_SYSTEMS = ("__MACOSX", "__pycache__")  # folders that programs leave behind
# what pillow may take a file for, whatever its name; for some others it starts programs, such as Ghostscript
_FORMATS = ("PNG", "JPEG", "WEBP", "TIFF", "BMP", "GIF", "PPM")
_ANIMATED = ("GIF", "PNG", "WEBP")  # formats that hold animations; others hold previews
_ONE_HEADER = threading.Lock()  # Python 3.11 may fail where threads parse headers of arrays at once
GREY_MODES = {"1", "L", "LA"}
MOST_BYTES_IN_MEMORY = 4 << 30  # more are read from their files, batch by batch
_MOST_NAMED = 10  # bad files that one message lists
PICTURE_MODES = {1: "L", 3: "RGB"}  # of pillow, by the channels of a dataset


def visible_files(folder: Path, suffixes: set[str]) -> list[Path]:
    """The files with one of these endings, sorted; hidden files and what systems leave behind are skipped."""
    with opening(folder):
        return sorted(
            path
            for path in folder.iterdir()
            if path.suffix.lower() in suffixes and not path.name.startswith(".") and path.is_file()
        )


def visible_images(folder: Path, suffixes: set[str] = SUFFIXES) -> list[Path]:
    """The image files of a folder to learn from.

    What would be left out is an error: photographs of phones, links to nothing, and images in folders below.
    """
    phones, files = visible_files(folder, OF_PHONES), visible_files(folder, suffixes)
    problems = [f"{path} cannot be read as an image ({_what_it_is(path)})" for path in phones]
    for path in sorted(folder.iterdir()):
        if path.suffix.lower() in suffixes and path.is_symlink() and not path.exists():
            problems.append(f"{path} is a link to a file that is not there")
        elif path.suffix.lower() in suffixes and path.is_dir():
            problems.append(f"{path} is a folder, where an image file is expected; rename it or remove it")
    for below in visible_folders(folder):
        images = (path for path in files_below(below) if path.suffix.lower() in suffixes)
        if any(is_visible(path, folder) for path in images):
            problems.append(f"{below} holds images, but only those in {folder} itself are read")
    raise_all(problems)
    return files


def visible_folders(folder: Path) -> list[Path]:
    """The folders in a folder, sorted, without hidden ones."""
    with opening(folder):
        return sorted(path for path in folder.iterdir() if path.is_dir() and not _is_hidden(path.name))


def files_below(folder: Path, above: frozenset[Path] = frozenset()) -> Iterator[Path]:
    """All files in a folder and below it, sorted, but not those in hidden folders.

    Links to folders are followed, but not to one `above`.
    """
    here = folder.resolve()
    if here in above:
        return
    with opening(folder):
        entries = sorted(folder.iterdir())
    for path in entries:
        if not path.is_dir():
            yield path
        elif not _is_hidden(path.name):  # that of a system may not be readable
            yield from files_below(path, above | {here})


def find_images(names: Sequence[str]) -> list[str]:
    """The image files that `names` stand for: folders with all below them, and shell patterns.

    Other names are returned as they are.
    """
    found: list[str] = []
    for name in names:
        if not name:
            raise UserError("the name of an image is empty; name a file, or . for all in this folder")
        path, is_folder = Path(name), os.path.isdir(name)  # of a name that cannot be one, opening says why
        if not is_folder and (os.path.exists(name) or not has_magic(name)):
            found.append(name)
            continue
        below = list(files_below(path)) if is_folder else sorted(map(Path, glob(name, recursive=True)))
        images = [str(file) for file in below if file.suffix.lower() in SUFFIXES and is_visible(file, path)]
        if not images:
            phones = any(file.suffix.lower() in OF_PHONES for file in below)
            hint = "; save photographs of phones (HEIC) as JPEG first" if phones else ""
            raise MissingDataError(f"{name}: no image files ({', '.join(sorted(SUFFIXES))}){hint}")
        found += images
    return found


def skipped_images(folder: Path) -> list[Path]:
    """The images in a folder and below it that are not read because of how their names end."""
    others = (
        path
        for path in files_below(folder)
        if path.suffix.lower() not in SUFFIXES and is_visible(path, folder)
    )
    return [path for path in others if path.suffix.lower() in OF_PHONES or _is_image(path)]


def _is_image(path: Path) -> bool:
    try:
        with Image.open(path):
            return True
    except Exception:  # pillow raises many kinds for what is none
        return False


def is_visible(file: Path, root: Path) -> bool:
    """Whether `file` is one, and neither it nor a folder between it and `root` is hidden."""
    parts = file.relative_to(root).parts if file.is_relative_to(root) else file.parts[-1:]
    return file.is_file() and not any(map(_is_hidden, parts))


def _is_hidden(name: str) -> bool:
    return name.startswith(".") or name in _OF_SYSTEMS


@contextmanager
def opened_picture(
    path: Path, content: BytesIO | None = None, *, may_be_deep: bool = False, may_move: bool = False
) -> Iterator[Image.Image]:
    """The image at `path`, upright, to be decoded in the block; a damaged or a deep one is an error there.

    Where `content` is given, the image is read from it, and `path` is its name in messages. With
    `may_be_deep`, one of more than 8 bits per pixel is given as it is; with `may_move`, the first image of an
    animation is given.
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
            _set_upright(image, str(path), may_be_deep=may_be_deep)
            yield image
    except UserError:
        raise
    except UnidentifiedImageError as error:
        raise UserError(f"{path} cannot be read as an image ({_what_it_is(path)})") from error
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


def _set_upright(image: Image.Image, name: str, *, may_be_deep: bool = False) -> None:
    if image.mode[0] in "IF" and not may_be_deep:  # pillow would cut every value above 255 to white
        raise UserError(
            f"{name} has more than 8 bits per pixel (mode {image.mode}); save it as an 8-bit image first"
        )
    if image.mode == "LAB":  # pillow cannot convert it
        raise UserError(f"{name} has the colours of CIELAB; save it as an RGB image first")
    if _is_turned(image):
        ImageOps.exif_transpose(image, in_place=True)


def _what_it_is(path: Path) -> str:
    if path.suffix.lower() in OF_PHONES or _is_heif(path):
        return "a format of phones that is not read here: save it as JPEG first"
    if path.is_file() and not path.stat().st_size:
        return "the file is empty"
    return "its content is of no known image format"


def _is_heif(path: Path) -> bool:
    """Whether a file has the content of HEIC, whose name may end in .jpg all the same."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        head = file.read(12)
    return head[4:8] == b"ftyp" and head[8:] in _HEIF_BRANDS


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


def open_any(path: Path | Image.Image, *, may_be_deep: bool = False) -> Image.Image:
    """The picture in an image file, or in a NumPy file of bytes (height, width) or (height, width, 3).

    One that is open already is copied, and becomes what its file would give. More than 8 bits per pixel are
    an error unless the picture `may_be_deep`.
    """
    if isinstance(path, Image.Image):
        picture = path.copy()
        _set_upright(picture, "the picture", may_be_deep=may_be_deep)
        return picture
    if path.suffix.lower() == ARRAY_SUFFIX:
        return _open_array(path)
    with opened_picture(path, may_be_deep=may_be_deep) as picture:
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
    """Mode, and width and height, of a picture as `open_any` gives it, without decoding image files."""
    if path.suffix.lower() == ARRAY_SUFFIX:
        picture = open_any(path)
        return picture.mode, picture.size
    with opened_picture(path) as picture:
        return picture.mode, picture.size


def common_mode(files: Sequence[Path]) -> str:
    """Greyscale ("L") where all pictures are, else "RGB"; one message lists those that cannot be read."""
    modes, problems = set(), []
    for path in files:
        try:
            modes.add(mode_and_size(path)[0])
        except UserError as error:
            problems.append(str(error))
    raise_all(problems)
    return "L" if modes <= GREY_MODES else "RGB"


def as_bytes(picture: Image.Image) -> Tensor:
    """The pixels of a grey or RGB picture as bytes (channels, height, width)."""
    pixels = np.array(picture, dtype=np.uint8)
    return torch.from_numpy(pixels[None] if pixels.ndim == 2 else pixels.transpose(2, 0, 1).copy())


def read_picture(path: Path, mode: str, frame: Frame | None) -> Tensor:
    """An image file as bytes (channels, height, width), in `mode` ("L" or "RGB") and fitted to `frame`."""
    picture = open_any(path)
    if mode == "L" and picture.mode not in GREY_MODES:
        raise UserError(
            f"{path} is stored in colour (mode {picture.mode}), but all training images are greyscale; "
            "save it as a greyscale image"
        )
    picture = without_transparency(picture).convert(mode)
    return as_bytes(picture if frame is None else fit_picture(picture, *frame))


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


def raise_all(problems: Sequence[str]) -> None:
    """One error for all problems; none where there are none."""
    if not problems:
        return
    if len(problems) == 1:
        raise UserError(problems[0])
    listed = "".join(f"\n  {words}" for words in problems[:_MOST_NAMED])
    more = f"\n  and {len(problems) - _MOST_NAMED} more" if len(problems) > _MOST_NAMED else ""
    raise UserError(f"{len(problems)} files cannot be used; mend or remove them:{listed}{more}")
