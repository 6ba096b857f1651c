"""Images with masks: `images/` and `masks/`, alone or in `train` and `test`, paired by their names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image, ImageFilter
from torch import Tensor

from torchcaps.core import MissingDataError, UserError
from torchcaps.storage import read_text

from ..api import Frame, Split
from ..examples import MaskedImages
from ..fit import fit_picture
from .layout import SPLIT_FOLDERS, FolderContent, split_by_name, split_folder, validation_folder
from .listing import SUFFIXES, composed, visible_files, visible_images
from .picture import ARRAY_SUFFIX, common_mode, mode_and_size, open_any, read_picture, read_pictures
from .unopened import raise_all

_CLASS_FILE = "classes.txt"
_MASK_SUFFIXES = {".png", ".tif", ".tiff", ".bmp", ARRAY_SUFFIX, ".jpg", ".jpeg", ".webp"}
_LOSSY = {".jpg", ".jpeg", ".webp"}  # their masks are told from the background at half of the brightness
_AREA = 5  # pixels a side; levels of grey in it differ by at most _EVEN where it is even
_EVEN = 8
_APART = 32  # levels by which two classes, or the channels of a colour, differ at least


_Colour: TypeAlias = tuple[int, ...]


class _Pair(NamedTuple):
    image: Path
    mask: Path

    @property
    def name(self) -> str:
        """What image and mask have in common, and lists call them."""
        return _name(self.image)


def _name(path: Path) -> str:
    return composed(path.stem)


def open_mask_folders(root: Path, frame: Frame | None = None) -> FolderContent:
    """A folder of images and masks of the same names.

    Masks are greyscale or palette images, or NumPy arrays, of the size of their image: 0 is the background.
    Masks with one other value have one class, "object", whatever that value is; masks with several hold class
    numbers from 1 on. `classes.txt` names the classes, one a line; where it names several, masks hold class
    numbers as well. Without `train` and `test`, a fifth of the images is set aside for testing. Images in
    `val`, or listed in `val.txt`, validate.
    """
    pairs, held_out = _list_pairs(root)
    values = _check_masks([pair for found in (*pairs.values(), held_out) for pair in found])
    classes = _class_names(root, values, masks=[pair.mask for pair in pairs["train"]])
    images: dict[Split, list[Path]] = {
        split: [pair.image for pair in found] for split, found in pairs.items()
    }
    is_split_here = (root / "images").is_dir() and not (root / "train.txt").is_file()
    deciding = [*images["train"], *(images["test"] if is_split_here else ())]
    read = partial(read_picture, mode=common_mode(deciding, frame), frame=frame)
    read_mask = partial(_read_mask, is_binary=len(classes) == 1, frame=frame)

    def examples(found: Sequence[_Pair]) -> MaskedImages:
        pictures, masks = [pair.image for pair in found], [pair.mask for pair in found]
        return MaskedImages(read_pictures(pictures, read), read_pictures(masks, read_mask), classes)

    validation = partial(examples, held_out) if held_out else None
    return FolderContent(classes, images, read, lambda split: examples(pairs[split]), validation)


class _Listed(NamedTuple):
    """Pairs that train and test, and those that validate: none where any that train may be taken."""

    splits: dict[Split, list[_Pair]]
    validation: list[_Pair]


def _list_pairs(root: Path) -> _Listed:
    if (root / "train.txt").is_file():
        return _listed_pairs(root)
    if (root / "images").is_dir():
        pairs = {pair.image: pair for pair in _pairs_in(root)}
        chosen = split_by_name(list(pairs))
        return _Listed({split: [pairs[image] for image in images] for split, images in chosen.items()}, [])
    if any((root / name).is_dir() for name in SPLIT_FOLDERS["train"]):
        splits = {split: _pairs_in(split_folder(root, split)) for split in SPLIT_FOLDERS}
        held_out = validation_folder(root)
        return _Listed(splits, [] if held_out is None else _pairs_in(held_out))
    raise MissingDataError(
        f"{root} should have the folders images and masks, or train and test with images and masks in each"
    )


def _listed_pairs(root: Path) -> _Listed:
    """The pairs that `train.txt`, `test.txt` and `val.txt` name; they lie here, or two folders above."""
    pairs = {pair.name: pair for pair in _pairs_in(place_of_lists(root))}
    train, test, validation = (
        _named_pairs(root / f"{name}.txt", pairs, is_needed=name != "val")
        for name in ("train", "test", "val")
    )
    counts = Counter(pair.name for pair in (*train, *test, *validation))
    raise_all(
        [
            f"{root}: {name} is listed {count} times; an image trains, validates or tests"
            for name, count in counts.items()
            if count > 1
        ]
    )
    return _Listed({"train": train, "test": test}, validation)


def place_of_lists(root: Path) -> Path:
    """Where the images lie that the lists in `root` name."""
    return root if (root / "images").is_dir() else root.absolute().parent.parent


def _named_pairs(path: Path, pairs: Mapping[str, _Pair], *, is_needed: bool) -> list[_Pair]:
    if not path.is_file() and not is_needed:
        return []
    if not path.is_file():
        raise MissingDataError(
            f"{path} is missing; it names the images of its split, one a line, without .png"
        )
    names = [composed(line.strip()) for line in read_text(path).splitlines() if line.strip()]
    raise_all([f"{path} names {name}, which is no image" for name in names if name not in pairs])
    if is_needed and not names:
        raise MissingDataError(f"{path} names no images")
    return [pairs[name] for name in names]


def _pairs_in(folder: Path) -> list[_Pair]:
    for name in ("images", "masks"):
        if not (folder / name).is_dir():
            raise MissingDataError(f"{folder} has no folder {name}")
    images = visible_images(folder / "images", SUFFIXES | {ARRAY_SUFFIX})
    found = visible_files(folder / "masks", _MASK_SUFFIXES)
    masks = {_name(path): path for path in found}
    if not images:
        raise MissingDataError(f"{folder / 'images'} has no images")
    missing = [
        f"{path} has no mask {path.stem}.png in {folder / 'masks'}"
        for path in images
        if _name(path) not in masks
    ]
    raise_all(missing + _twins(images) + _twins(found))
    return [_Pair(path, masks[_name(path)]) for path in images]


def _twins(files: Sequence[Path]) -> list[str]:
    """What is wrong with files that differ in their ending alone: a mask is found by the name before it."""
    first: dict[str, Path] = {}
    return [
        f"{path} has the name of {other.name}; rename or remove one"
        for path in files
        if (other := first.setdefault(_name(path), path)) != path
    ]


def _check_masks(pairs: Sequence[_Pair]) -> list[int]:
    """The values other than 0 that masks have; an error lists masks that cannot be read or do not fit."""
    values: set[int] = set()
    shown: dict[_Colour, tuple[Path, set[int]]] = {}
    problems = []
    for image, path in pairs:
        try:
            picture = open_any(path)
            mask = _class_numbers(picture, path)
            _, (width, height) = mode_and_size(image)
            if mask.size != (width, height):
                raise UserError(
                    f"{path} has {mask.width}x{mask.height} pixels, but its image has {width}x{height}"
                )
            own = set(np.unique(np.asarray(mask)).tolist())
            _check_palette(picture, own, path, shown)
            values |= own
        except UserError as error:
            problems.append(str(error))
    raise_all(problems)
    return sorted(values - {0})


def _check_palette(
    picture: Image.Image, values: set[int], path: Path, shown: dict[_Colour, tuple[Path, set[int]]]
) -> None:
    """Raise where a palette gives a colour of the masks before, in `shown`, only numbers that they do not.

    Programs that turn colours into a palette sort it anew for each file: its numbers are no classes.
    """
    if picture.mode != "P":
        return
    palette = np.array(picture.getpalette("RGB") or (), np.uint8).reshape(-1, 3).tolist()
    numbers: dict[_Colour, set[int]] = {}
    for value in values & set(range(len(palette))):
        numbers.setdefault(tuple(palette[value]), set()).add(value)
    for colour, own in numbers.items():
        other, known = shown.setdefault(colour, (path, set()))
        if known and not known & own:
            raise UserError(
                f"{path} shows the number {min(own)} in the colour in which {other} shows {min(known)}; "
                "save all masks with one palette, in which 0 is the background"
            )
        known |= own


def _open_mask(path: Path) -> Image.Image:
    return _class_numbers(open_any(path), path)


def _class_numbers(picture: Image.Image, path: Path) -> Image.Image:
    """A mask as class numbers in an 8-bit picture; a palette image holds numbers already."""
    is_lossy = path.suffix.lower() in _LOSSY
    if picture.mode == "1":
        picture = picture.convert("L")
    if picture.mode in ("RGB", "RGBA", "LA"):
        channels = np.asarray(picture.convert("RGB"))
        if np.ptp(channels, axis=2).max() > (_APART if is_lossy else 0):
            raise UserError(f"{path} is in colour; a mask holds the number of a class at each pixel")
        _check_clear(picture, channels[:, :, 0], path)
        picture = Image.fromarray(channels[:, :, 0])
    if is_lossy:
        picture = picture.convert("L")
        _check_lossy(picture, path)
        picture = picture.point(lambda value: 255 * (value >= 128))
    return Image.fromarray(np.asarray(picture, dtype=np.uint8))


def _check_clear(picture: Image.Image, numbers: NDArray[np.uint8], path: Path) -> None:
    """Raise where clear pixels and those with the number 0 are not the same: which is the background?"""
    if picture.mode == "RGB":
        return
    alpha = np.asarray(picture.getchannel("A"))
    if alpha.min() < 255 and ((alpha > 0) != (numbers > 0)).any():
        raise UserError(
            f"{path} has clear parts other than its background; save the mask without transparency, with the "
            "number of a class at each pixel"
        )


def _check_lossy(picture: Image.Image, path: Path) -> None:
    """Raise where even areas, which compression leaves almost as they are, have several levels of grey."""
    darkest, lightest = (
        np.asarray(picture.filter(kind(_AREA))).astype(int)
        for kind in (ImageFilter.MinFilter, ImageFilter.MaxFilter)
    )
    levels = darkest[(lightest - darkest <= _EVEN) & (darkest > _EVEN)]
    if levels.size and np.ptp(levels) > _APART:
        raise UserError(
            f"{path} has areas of several levels of grey, but a {path.suffix} mask is white on black; "
            "save masks of several classes as class numbers in PNG files"
        )


def _read_mask(path: Path, *, is_binary: bool, frame: Frame | None) -> Tensor:
    mask = _open_mask(path)
    if frame is not None:
        mask = fit_picture(mask, *frame[:3], is_mask=True)
    numbers = torch.from_numpy(np.array(mask))
    return ((numbers > 0).to(torch.uint8) if is_binary else numbers).unsqueeze(0)


def _class_names(root: Path, values: list[int], masks: Sequence[Path]) -> tuple[str, ...]:
    """The names of the classes, listed or not, of masks that have these values beside 0."""
    path = root / _CLASS_FILE
    if not path.is_file() and (root / "train.txt").is_file():  # lists share the names of their images
        path = place_of_lists(root) / _CLASS_FILE
    names = _listed_names(path)
    if not values:
        is_lossy = any(mask.suffix.lower() in _LOSSY for mask in masks)
        hint = "; in JPEG and WebP masks the object is white: save class numbers as PNG" if is_lossy else ""
        raise UserError(f"the masks in {root} are empty: every pixel is background{hint}")
    count = 1 if len(values) == 1 and len(names) < 2 else max(values)
    if names and len(names) < count:
        raise UserError(f"{path} names {len(names)} classes, but masks have the value {count}")
    if not names and count > 100:
        raise UserError(
            f"the masks in {root} have values up to {count}: is this a picture? A mask holds 0 for the "
            f"background and class numbers 1, 2, ...; {path} can name more than 100 classes"
        )
    return names or (("object",) if count == 1 else tuple(str(number) for number in range(1, count + 1)))


def _listed_names(path: Path) -> tuple[str, ...]:
    """The names in a file, one a line; none where there is no file."""
    lines = read_text(path).split("\n") if path.is_file() else []
    names = tuple(composed(line.strip()) for line in lines if line.strip())
    raise_all([f"{path} names {name} more than once" for name in sorted(set(names)) if names.count(name) > 1])
    return names
