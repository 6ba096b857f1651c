"""What a dataset is, how one is named, found on disk and loaded."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

from torchcaps.core import ImageSize, Registry, UserError, require_choice, sides
from torchcaps.storage import expanded

from .examples import Examples
from .fit import Fit

Split: TypeAlias = Literal["train", "test"]
SPLITS: tuple[Split, ...] = ("train", "test")
FOLDER_PREFIX = "folder:"
LONGEST_SIDE = 10_000  # pixels that images are brought to; more is a mistake


class Frame(NamedTuple):
    """What photographs of many kinds are brought to."""

    height: int
    width: int
    fit: Fit = "crop"  # the rule
    in_colour: bool = False  # grey ones become RGB


Reader: TypeAlias = Callable[[Path, Split], Examples]
FramedReader: TypeAlias = Callable[[Path, Split, Frame], Examples]


@dataclass(frozen=True)
class RemoteFile:
    """A published file: where it belongs in the data folder, where it comes from, and how to recognise it.

    `split` is None for a file that both splits need or none does. An archive lists in `contains` what it
    unpacks to; its parts have no address of their own, and one with `num_images` is a folder of so many.
    """

    path: str
    url: str = ""
    size: int | None = None
    sha256: str | None = None
    md5: str | None = None
    split: Split | None = None
    contains: tuple[RemoteFile, ...] = ()
    num_images: int | None = None


@dataclass(frozen=True, kw_only=True)
class DatasetInfo:
    """All that is known about a dataset before its files are read.

    `mean` and `std` are per channel, of pixels scaled to [0, 1]. `folders` are the places under the data
    folder in which the files are looked for. Photographs of many sizes also have a `framed_reader`, which
    brings them to a given size; `height` and `width` are what `reader` brings them to, by the rule `fit`.
    `protocol` is raised when the same name begins to give other examples or another validation split: results
    of two protocols are not averaged. `listing` is a digest of the training files of a user's folder.
    """

    name: str
    title: str
    channels: int
    height: int
    width: int
    classes: tuple[str, ...]
    mean: tuple[float, ...]
    std: tuple[float, ...]
    num_train: int
    num_test: int
    licence: str
    reader: Reader
    framed_reader: FramedReader | None = None
    fit: Fit = "crop"
    task: str = "classification"
    files: tuple[RemoteFile, ...] = ()
    folders: tuple[str, ...] = ()
    protocol: int = 1
    listing: str = ""

    @property
    def num_classes(self) -> int:
        """How many classes there are."""
        return len(self.classes)


DATASETS: Registry[DatasetInfo] = Registry("dataset")
FAMILIES: dict[str, Callable[[str], DatasetInfo]] = {}  # datasets with settings behind a colon, by name


def find_info(name: str) -> DatasetInfo:
    """What is known about a dataset by its name, or by its name and settings as in `partwhole:classes=6`."""
    family, colon, settings = name.partition(":")
    return FAMILIES[family](settings) if colon and family in FAMILIES else DATASETS[name]


def _require_name(name: object) -> None:
    """Raise for what is no name, and for a folder that is not called one."""
    if isinstance(name, str | os.PathLike) and str(name) not in DATASETS and os.path.isdir(name):
        raise UserError(f"{name} is a folder, and a folder of images is called folder:{name}")
    if not isinstance(name, str):
        raise UserError(f"a dataset is known by its name, as in list_datasets(), got a {type(name).__name__}")


def data_protocol(name: str) -> int:
    """The protocol by which a dataset is made now; that of images in a folder never changes."""
    family = name.partition(":")[0]
    return DATASETS[family].protocol if family in DATASETS else 1


def list_datasets(pattern: str = "*") -> list[str]:
    """The names of the known datasets that match a shell pattern.

    Examples:
        >>> list_datasets("*cifar10")
        ['cifar10', 'synthetic_cifar10']
    """
    return DATASETS.names(pattern)


def resolve_data_dir(data_dir: Path | str | None = None) -> Path:
    """The data folder: the argument, else `TORCHCAPS_DATA`, else `~/.cache/torchcaps/data`."""
    chosen = data_dir or os.environ.get("TORCHCAPS_DATA") or "~/.cache/torchcaps/data"
    return expanded(chosen)


@dataclass(frozen=True)
class Dataset:
    """A dataset whose files were found: what is known about it, and its splits.

    Attributes:
        describe: Gives the info; `info` calls it once, and only if somebody asks.
        examples: Reads a split.
        validation: Reads the examples that validate, where the dataset says which do; else some of those that
            train do.
    """

    describe: Callable[[], DatasetInfo]
    examples: Callable[[Split], Examples]
    validation: Callable[[], Examples] | None = None

    @cached_property
    def info(self) -> DatasetInfo:
        """What is known about the dataset, at the size to which photographs are brought."""
        return self.describe()


def open_dataset(
    name: str,
    data_dir: Path | str | None = None,
    *,
    size: ImageSize = 0,
    fit: Fit = "crop",
    task: str = "classification",
    in_colour: bool = False,
) -> Dataset:
    """A dataset to read from; a folder of files is looked through once. Arguments as in `load_dataset`.

    With `in_colour`, a folder of grey files is read in RGB.
    """
    _require_name(name)
    folder = resolve_data_dir(data_dir)
    if name.startswith(FOLDER_PREFIX):
        from .folders.folder import open_folder  # imports this module

        return open_folder(name, folder, size=size, fit=fit, task=task, in_colour=in_colour)
    info = find_info(name)
    if size and info.framed_reader is not None:
        frame, read = Frame(*sides(size), fit), info.framed_reader
        framed = replace(info, height=frame.height, width=frame.width, fit=fit)
        return Dataset(lambda: framed, lambda split: read(folder, split, frame))
    return Dataset(lambda: replace(info, fit=fit), lambda split: info.reader(folder, split))


def dataset_info(
    name: str,
    data_dir: Path | str | None = None,
    *,
    size: ImageSize = 0,
    fit: Fit = "crop",
    task: str = "classification",
) -> DatasetInfo:
    """What is known about a dataset, read off the files for `folder:PATH`; arguments as in `load_dataset`.

    Examples:
        >>> info = dataset_info("cifar10")
        >>> info.height, info.classes[3]
        (32, 'cat')
    """
    return open_dataset(name, data_dir, size=size, fit=fit, task=task).info


class Outline(NamedTuple):
    """What a network must fit: found without reading all images."""

    task: str
    num_classes: int
    channels: int
    num_train: int
    has_validation: bool = False  # whether the dataset says which images validate


def outline_dataset(
    name: str, data_dir: Path | str | None = None, *, task: str = "classification"
) -> Outline:
    """Classes, channels and training images of a dataset; `task` decides the layout of a folder."""
    if name.startswith(FOLDER_PREFIX):
        from .folders.folder import outline_folder  # imports this module

        return outline_folder(name, resolve_data_dir(data_dir), task=task)
    info = find_info(name)
    return Outline(info.task, info.num_classes, info.channels, info.num_train)


def load_dataset(
    name: str,
    split: Split,
    data_dir: Path | str | None = None,
    *,
    size: ImageSize = 0,
    fit: Fit = "crop",
    task: str = "classification",
) -> Examples:
    """One split of a dataset.

    Args:
        name: one of `list_datasets()`, or `folder:PATH` for a folder of images, `folder:PATH@64` or
            `folder:PATH@44x60` (height x width) to bring them to one size.
        split: "train" or "test".
        data_dir: see `resolve_data_dir`.
        size: that photographs of many sizes are brought to, of a square or (height, width); 0 is the
            dataset's own, and datasets of one size keep it.
        fit: by which rule; see `fit_picture`.
        task: what the examples are for, which decides the layout of a folder.

    Examples:
        >>> load_dataset("synthetic_mnist", "test").images.shape
        torch.Size([128, 1, 28, 28])
    """
    require_choice("split", split, SPLITS)
    return open_dataset(name, data_dir, size=size, fit=fit, task=task).examples(split)
