"""Images in one folder per class: `root/train/<class>/*.png`, and `test` or `val` beside `train`."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image

from torchcaps.core import MissingDataError, UserError

from ..api import FOLDER_PREFIX, DatasetInfo, LabelledImages, Split
from .picture import opened_picture

_SUFFIXES = {".png", ".jpg", ".jpeg"}
_GREY_MODES = {"1", "L", "LA"}
_SPLIT_FOLDERS: dict[Split, tuple[str, ...]] = {"train": ("train",), "test": ("test", "val")}
_MOST_MEASURED = 1000


class FolderName(NamedTuple):
    """A dataset name `folder:PATH` or `folder:PATH@SIZE`, taken apart."""

    root: Path
    size: int | None


def parse_folder_name(name: str, data_dir: Path) -> FolderName:
    """Where the images lie; a relative path counts from the working folder, or else from the data folder."""
    text = name.removeprefix(FOLDER_PREFIX)
    match = re.fullmatch(r"(.+)@(\d+)", text)
    path = Path(match[1] if match else text).expanduser()
    root = path if path.is_dir() else data_dir / path
    if not text:
        raise MissingDataError(
            f"{name!r} names no folder; expected folder:PATH with PATH/train/<class>/*.png"
        )
    if not root.is_dir():
        # an absolute path is one place, whatever the data folder
        tried = f"{path} is not" if root == path else f"neither {path} nor {root} is"
        raise MissingDataError(f"{name}: {tried} a folder; expected PATH/train/<class>/*.png")
    return FolderName(root, int(match[2]) if match else None)


def read_named_folder(name: str, data_dir: Path, split: Split) -> LabelledImages:
    """One split of the dataset called `folder:PATH` or `folder:PATH@SIZE`."""
    root, size = parse_folder_name(name, data_dir)
    return read_image_folder(root, split, size)


def read_image_folder(root: Path, split: Split, size: int | None = None) -> LabelledImages:
    """All images of a split, sorted by class and file name.

    The training images decide: greyscale if all of them are, else RGB, and their folders are the classes.
    Files whose name begins with a dot are ignored; any other that is not a readable PNG or JPEG is an error.

    Args:
        root: holds `train` and `test` (or `val`).
        split: which of them to read.
        size: every image is stretched to this height and width; without it all must have one size.
    """
    classes = _class_names(root)
    files = list_files(root, split, classes)
    mode = _common_mode(root, classes)
    images = _stack([_read_image(path, mode, size) for path, _ in files], [path for path, _ in files])
    labels = torch.tensor([label for _, label in files])
    return LabelledImages(torch.from_numpy(images), labels, classes)


def describe_folder(name: str, data_dir: Path) -> DatasetInfo:
    """What the files say; mean and std are those of at most 1,000 evenly spaced training images."""
    root, size = parse_folder_name(name, data_dir)
    classes, mode = _class_names(root), _common_mode(root, _class_names(root))
    train, test = (list_files(root, split, classes) for split in _SPLIT_FOLDERS)
    step = -(-len(train) // _MOST_MEASURED)
    sample = [_read_image(path, mode, size) for path, _ in train[::step]]
    channels, height, width = sample[0].shape  # of all of them: the reader accepts no two sizes
    pixels = np.concatenate([image.reshape(channels, -1) for image in sample], axis=1) / 255
    return DatasetInfo(
        name=name,
        title=f"images in {root}",
        channels=channels,
        height=height,
        width=width,
        classes=classes,
        mean=tuple(pixels.mean(1).tolist()),
        std=tuple(np.maximum(pixels.std(1), 1e-3).tolist()),  # one flat colour must not divide by zero
        num_train=len(train),
        num_test=len(test),
        licence="unknown: these are your files",
        reader=partial(_read_described, root, size),
    )


def _read_described(root: Path, size: int | None, data_dir: Path, split: Split) -> LabelledImages:
    return read_image_folder(root, split, size)


def _split_folder(root: Path, split: Split) -> Path:
    for folder in _SPLIT_FOLDERS[split]:
        if (root / folder).is_dir():
            return root / folder
    raise MissingDataError(
        f"{root} has no folder {' or '.join(_SPLIT_FOLDERS[split])} with a folder for each class"
    )


def _visible(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if not path.name.startswith("."))


def _class_names(root: Path) -> tuple[str, ...]:
    folder = _split_folder(root, "train")
    class_folders = [path for path in _visible(folder) if path.is_dir()]
    if len(class_folders) < 2:
        raise UserError(
            f"{folder} should have a folder for each of at least two classes, but has {len(class_folders)}"
        )
    for class_folder in class_folders:
        if not _visible(class_folder):
            raise UserError(
                f"{class_folder} is a class without training images; add some or remove the folder"
            )
    return tuple(path.name for path in class_folders)


def list_files(root: Path, split: Split, classes: tuple[str, ...]) -> list[tuple[Path, int]]:
    """The images of a split in the order of folders and names, each with the number of its class."""
    folder = _split_folder(root, split)
    files = []
    for class_folder in _visible(folder):
        if not class_folder.is_dir() or class_folder.name not in classes:
            raise UserError(
                f"{class_folder} is not a folder of one of the training classes: {', '.join(classes)}"
            )
        files += [(path, classes.index(class_folder.name)) for path in _visible(class_folder)]
    for path, _ in files:
        if path.suffix.lower() not in _SUFFIXES or not path.is_file():
            raise UserError(f"{path} is not a PNG or JPEG file; remove it or move it out of the dataset")
    if not files:
        raise MissingDataError(f"{folder} has no images")
    return files


def _common_mode(root: Path, classes: tuple[str, ...]) -> str:
    is_grey = all(_image_mode(path) in _GREY_MODES for path, _ in list_files(root, "train", classes))
    return "L" if is_grey else "RGB"


def _image_mode(path: Path) -> str:
    with opened_picture(path) as image:
        return image.mode


def _read_image(path: Path, mode: str, size: int | None) -> NDArray[np.uint8]:
    with opened_picture(path) as image:
        if mode == "L" and image.mode not in _GREY_MODES:
            raise UserError(f"{path} is in colour, but all training images are greyscale")
        picture = image.convert(mode)
    if size is not None:
        picture = picture.resize((size, size), Image.Resampling.BILINEAR)
    pixels = np.asarray(picture)
    return pixels[None] if mode == "L" else pixels.transpose(2, 0, 1)


def _stack(images: list[NDArray[np.uint8]], paths: list[Path]) -> NDArray[np.uint8]:
    first = images[0].shape
    for image, path in zip(images, paths, strict=True):
        if image.shape != first:
            raise UserError(
                f"{path} has {image.shape[2]}x{image.shape[1]} pixels, but {paths[0]} has "
                f"{first[2]}x{first[1]}; give a size to stretch all images to, as in folder:PATH@64"
            )
    return np.stack(images)
