"""Images in one folder per class: `train/<class>/` beside `test` and `val`, or `<class>/` alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import torch
from torch import Tensor

from torchcaps.core import MissingDataError, UserError, counted, listed

from ..api import Frame, Split
from ..examples import LabelledImages
from .layout import (
    SPLIT_FOLDERS,
    FolderContent,
    has_split_folders,
    split_by_name,
    split_folder,
    validation_folder,
)
from .listing import (
    OF_PHONES,
    SUFFIXES,
    composed,
    visible_files,
    visible_folders,
    visible_images,
)
from .picture import common_mode, read_picture, read_pictures
from .unopened import raise_all

_IMAGES = SUFFIXES | OF_PHONES
_LAYOUT = "PATH/train/<class>/ and PATH/test/<class>/, or PATH/<class>/ alone, with an image file in each"


def open_class_folders(root: Path, frame: Frame | None = None) -> FolderContent:
    """A folder of class folders.

    The training images decide: greyscale if all of them are, else RGB, and their folders are the classes.
    Files without the ending of an image are skipped, those of phones refused. Without `train` and `test`, a
    fifth of each class is set aside for testing, and all images decide. Images in `val` beside `test`
    validate.
    """
    files = list_splits(root)
    classes = _classes_of(files["train"])
    deciding = files["train"] if has_split_folders(root) else [*files["train"], *files["test"]]
    read = partial(read_picture, mode=common_mode(deciding, frame), frame=frame)
    examples = partial(_labelled, classes=classes, read=read)
    held_out = validation_folder(root) if has_split_folders(root) else None
    validation = None if held_out is None else partial(examples, _list_images(held_out, classes))
    return FolderContent(classes, files, read, lambda split: examples(files[split]), validation)


def read_test_folders(root: Path, classes: tuple[str, ...], read: Callable[[Path], Tensor]) -> LabelledImages:
    """The images in `test`, or all of a folder without splits, for a network that learnt from none of them.

    Its folders are some of the classes of the network, and `read` gives an image as bytes.
    """
    folder = split_folder(root, "test") if has_split_folders(root) else root
    if not visible_folders(folder):
        raise UserError(f"{folder} should have a folder for each class, with an image file in each")
    return _labelled(_list_images(folder, classes), classes, read)


def _labelled(
    files: Sequence[Path], classes: tuple[str, ...], read: Callable[[Path], Tensor]
) -> LabelledImages:
    labels = torch.tensor(_class_numbers(files, classes))
    return LabelledImages(read_pictures(files, read), labels, classes)


def _class_numbers(files: Sequence[Path], classes: Sequence[str]) -> list[int]:
    numbers = {name: number for number, name in enumerate(classes)}
    return [numbers[_class_of(path)] for path in files]


def _classes_of(files: Sequence[Path]) -> tuple[str, ...]:
    """The classes that the folders of images are named after, in their order."""
    return tuple(dict.fromkeys(map(_class_of, files)))


def _class_of(image: Path) -> str:
    return composed(image.parent.name)


def folders_of_classes(root: Path) -> list[Path]:
    """The folders in which every folder is a class: those of the splits, or `root` itself."""
    if not has_split_folders(root):
        return [root]
    splits = [root / name for names in SPLIT_FOLDERS.values() for name in names]
    return [folder for folder in splits if folder.is_dir()]


def list_splits(root: Path) -> dict[Split, list[Path]]:
    """The images that train and those that test."""
    if has_split_folders(root):
        classes = [composed(folder.name) for folder in _class_folders(split_folder(root, "train"))]
        return {split: _list_images(split_folder(root, split), classes) for split in SPLIT_FOLDERS}
    files: dict[Split, list[Path]] = {"train": [], "test": []}
    for folder in _class_folders(root):
        for split, chosen in split_by_name(_class_files(folder, least=2)).items():
            files[split] += chosen
    return files


def _class_folders(folder: Path) -> list[Path]:
    found = visible_folders(folder)
    names = {path.name for path in found}
    if names == {"images", "masks"}:  # a network would learn to tell masks from images
        raise UserError(
            f"{folder} has images with masks, not a folder for each class; a segmentation recipe takes it: "
            "segmentation/segcaps_r3"
        )
    if found or not visible_files(folder, _IMAGES):  # of images alone, the layout says more than a list
        _check_loose(folder)
    if len(found) < 2:
        raise UserError(
            f"{folder} should have a folder for each of at least two classes, but has {len(found)}; "
            f"expected {_LAYOUT}"
        )
    for each in found:
        _class_files(each, least=1)
    return found


def _check_loose(folder: Path) -> None:
    """Raise for what would be left out: images beside the class folders, links to folders that are gone."""
    loose = visible_files(folder, _IMAGES)
    problems = [f"{path} is in no class folder; move it into one, or out of {folder}" for path in loose]
    broken = (path for path in sorted(folder.iterdir()) if path.is_symlink() and not path.exists())
    problems += [
        f"{path} is a link to a folder that is not there; mend it or remove it"
        for path in broken
        if not path.name.startswith(".")
    ]
    raise_all(problems)


def _class_files(folder: Path, least: int) -> list[Path]:
    below = (visible_files(each, SUFFIXES) for each in visible_folders(folder))
    if not visible_files(folder, SUFFIXES) and any(below):
        raise UserError(
            f"{folder} is taken for a class, but holds folders of images; images of a class lie in one "
            "folder, and folders of splits are called train, test and val"
        )
    files = visible_images(folder)
    if len(files) < least:
        raise UserError(
            f"{folder} is a class with {counted(len(files), 'image')}, and needs {least} or more "
            f"({', '.join(sorted(SUFFIXES))}); add some or remove the folder"
        )
    return files


def list_files(root: Path, split: Split, classes: Sequence[str]) -> list[tuple[Path, int]]:
    """The images of a split in the order of folders and names, each with the number of its class."""
    files = _list_images(split_folder(root, split), classes)
    return list(zip(files, _class_numbers(files, classes), strict=True))


def _list_images(folder: Path, classes: Sequence[str]) -> list[Path]:
    _check_loose(folder)
    files = []
    for class_folder in visible_folders(folder):
        if composed(class_folder.name) not in classes:
            raise UserError(
                f"{class_folder} is not a folder of one of the training classes: {listed(classes)}"
            )
        files += visible_images(class_folder)
    if not files:
        raise MissingDataError(f"{folder} has no images")
    return files
