"""Datasets named `folder:PATH`: a user's own files, in the layout of the task."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from torchcaps.core import ImageSize, MissingDataError, UserError, sides
from torchcaps.storage import expanded

from ..api import FOLDER_PREFIX, LONGEST_SIDE, Dataset, DatasetInfo, Frame, Outline, Split
from ..examples import Examples
from ..fit import Fit
from ..maps.places import PlaceContent, open_map_folder
from .class_folders import open_class_folders
from .layout import SPLIT_FOLDERS, FolderContent, digest_of_files, step_to
from .mask_folders import open_mask_folders, place_of_lists
from .posed_folder import POSES_FILE, open_posed_folder
from .unopened import opening

Content = FolderContent | PlaceContent
LAYOUTS: dict[str, Callable[[Path, Frame | None], Content]] = {
    "classification": open_class_folders,
    "segmentation": open_mask_folders,
    "pose": open_posed_folder,
    "retrieval": open_map_folder,
}
_MOST_MEASURED = 1000
_SIZED = re.compile(r"(.+)@(\d+)(?:x(\d+))?")


class FolderName(NamedTuple):
    """A dataset name `folder:PATH`, `folder:PATH@SIDE` or `folder:PATH@HEIGHTxWIDTH`, taken apart."""

    root: Path
    size: ImageSize  # 0 where the name gives none


def parse_folder_name(name: str, data_dir: Path) -> FolderName:
    """Where the images lie: at the path, or below the data folder at the path or its last part."""
    text = name.removeprefix(FOLDER_PREFIX)
    match, path = _SIZED.fullmatch(text), folder_path(text)
    if not text:
        raise MissingDataError(f"{name!r} names no folder; expected folder:PATH")
    places = list(dict.fromkeys((path, data_dir / path, data_dir / path.name)))
    root = next((place for place in places if place.is_dir()), None)
    if root is None:
        raise MissingDataError(
            f"{name}: there is no folder {' or '.join(map(str, places))}; --data-dir names the folder that "
            f"holds {path.name}"
        )
    size: ImageSize = 0
    if match:
        texts = [text for text in match.groups()[1:] if text]
        if any(len(text) > 5 or not 1 <= int(text) <= LONGEST_SIDE for text in texts):
            raise UserError(f"{name[:200]}: sides must lie between 1 and {LONGEST_SIDE:,} pixels")
        size = (int(texts[0]), int(texts[1])) if len(texts) > 1 else int(texts[0])
    return FolderName(root, size)


def folder_path(text: str) -> Path:
    """The path in `PATH`, `PATH@SIDE` or `PATH@HEIGHTxWIDTH`."""
    match = _SIZED.fullmatch(text)
    return expanded(match[1] if match else text)


def guess_task(name: str, data_dir: Path) -> str:
    """The task that a folder is laid out for, by files that no other layout has."""
    root = parse_folder_name(name, data_dir).root
    if (root / POSES_FILE).is_file():
        return "pose"
    if any(root.glob("*.npz")):
        return "retrieval"
    places = (root, *(root / folder for folders in SPLIT_FOLDERS.values() for folder in folders))
    has_masks = any((place / "images").is_dir() and (place / "masks").is_dir() for place in places)
    has_lists = (root / "train.txt").is_file() and (place_of_lists(root) / "images").is_dir()
    return "segmentation" if has_masks or has_lists else "classification"


def _open(
    name: str, data_dir: Path, *, size: ImageSize, fit: Fit, task: str, in_colour: bool = False
) -> tuple[Path, Content]:
    if task not in LAYOUTS:
        raise UserError(f"folder:PATH holds examples of {' or '.join(LAYOUTS)}, not of {task}")
    root, own = parse_folder_name(name, data_dir)
    wanted = own or size
    with opening(root):
        return root, LAYOUTS[task](root, Frame(*sides(wanted), fit, in_colour) if wanted else None)


def open_folder(
    name: str, data_dir: Path, *, size: ImageSize, fit: Fit, task: str, in_colour: bool
) -> Dataset:
    """The dataset called `name`, looked through once; a size in the name comes before `size`."""
    root, content = _open(name, data_dir, size=size, fit=fit, task=task, in_colour=in_colour)
    images = _MeasuredImages(content)
    return Dataset(
        lambda: _describe(name, root, content, images.measured(), fit=fit, task=task),
        images.examples,
        content.validation,
    )


def outline_folder(name: str, data_dir: Path, *, task: str) -> Outline:
    """What a network must fit, by the names of the files, their headers and one image."""
    _, content = _open(name, data_dir, size=0, fit="crop", task=task)
    has_validation = content.validation is not None
    return Outline(task, len(content.classes), content.channels, content.count("train"), has_validation)


class _Measured(NamedTuple):
    """What training images have in common."""

    shape: torch.Size  # of all of them: the reader accepts no two sizes
    mean: Tensor
    std: Tensor


class _MeasuredImages:
    """The examples of a folder; the training images are measured when they are read, if that comes first."""

    def __init__(self, content: Content) -> None:
        self._content = content
        self._measured: _Measured | None = None

    def examples(self, split: Split) -> Examples:
        """Read a split."""
        found = self._content.examples(split)
        if split == "train" and isinstance(found.images, Tensor):  # photographs are slow to decode again
            self._measured = _measure(found.images[:: step_to(_MOST_MEASURED, len(found.images))])
        return found

    def measured(self) -> _Measured:
        """Of at most 1,000 evenly spaced training images."""
        return self._measured or _measure(self._content.sample(_MOST_MEASURED))


def _measure(images: Sequence[Tensor] | Tensor) -> _Measured:
    return _Measured(images[0].shape, *_mean_and_deviation(images))


def _describe(
    name: str, root: Path, content: Content, measured: _Measured, *, fit: Fit, task: str
) -> DatasetInfo:
    channels, height, width = measured.shape
    return DatasetInfo(
        name=name,
        title=f"images in {root}",
        channels=channels,
        height=height,
        width=width,
        classes=content.classes,
        mean=tuple(measured.mean.tolist()),
        std=tuple(measured.std.clamp(min=1e-3).tolist()),  # a flat colour must not divide by 0
        num_train=content.count("train"),
        num_test=content.count("test"),
        licence="unknown: these are your files",
        reader=lambda data_dir, split: content.examples(split),
        fit=fit,
        task=task,
        listing=digest_of_files(content.images["train"]) if isinstance(content, FolderContent) else "",
    )


def _mean_and_deviation(images: Sequence[Tensor] | Tensor) -> tuple[Tensor, Tensor]:
    """Of each channel, from how often each byte occurs: pixels as numbers take 16 times their memory."""
    counts = torch.stack([_counts(image) for image in images]).sum(0)
    shares = counts.double() / counts.sum(1, keepdim=True)
    levels = torch.arange(256, dtype=torch.float64) / 255
    mean = shares @ levels
    return mean, (shares * (levels - mean[:, None]).square()).sum(1).sqrt()


def _counts(image: Tensor) -> Tensor:
    return torch.stack([torch.bincount(channel.flatten(), minlength=256) for channel in image])
