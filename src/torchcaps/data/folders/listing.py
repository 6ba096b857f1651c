"""Image files in folders: which there are, and which of them are left out."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Iterator, Sequence
from glob import glob, has_magic
from pathlib import Path

from PIL import Image

from torchcaps.core import MissingDataError, UserError

from .unopened import opening, raise_all

SUFFIXES = {".png", ".jpg", ".jpeg", ".webp", ".tif", ".tiff", ".bmp"}
OF_PHONES = {".heic", ".heif", ".avif"}
_HEIF_BRANDS = {b"heic", b"heix", b"hevc", b"heim", b"heis", b"mif1", b"msf1"}  # ISO 23008-12
_OF_SYSTEMS = ("__MACOSX", "__pycache__")  # folders that programs leave behind


def visible_files(folder: Path, suffixes: set[str]) -> list[Path]:
    """The files with one of these endings, sorted; hidden files and what systems leave behind are skipped."""
    with opening(folder):
        found = (path for path in folder.iterdir() if path.suffix.lower() in suffixes)
        return sorted(
            (path for path in found if not path.name.startswith(".") and path.is_file()), key=by_name
        )


def visible_images(folder: Path, suffixes: set[str] = SUFFIXES) -> list[Path]:
    """The image files of a folder to learn from.

    What would be left out is an error: photographs of phones, links to nothing, and images in folders below.
    """
    phones, files = visible_files(folder, OF_PHONES), visible_files(folder, suffixes)
    problems = [f"{path} cannot be read as an image ({what_it_is(path)})" for path in phones]
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
        found = (path for path in folder.iterdir() if path.is_dir() and not _is_hidden(path.name))
        return sorted(found, key=by_name)


def composed(text: str) -> str:
    """A name in which an accent is part of its letter: systems and archives store it either way."""
    return unicodedata.normalize("NFC", text)


def by_name(path: Path) -> tuple[list[str], Path]:
    """What puts paths in an order that does not depend on how their accents are stored."""
    return [composed(part) for part in path.parts], path


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


def what_it_is(path: Path) -> str:
    """What a file is that cannot be read as an image."""
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
