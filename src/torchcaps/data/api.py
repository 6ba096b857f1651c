"""What a dataset is, how one is named, found on disk and loaded."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, TypeAlias

import torch
from jaxtyping import Int64, UInt8
from torch import Tensor

from torchcaps.core import Registry, UserError

Split: TypeAlias = Literal["train", "test"]
SPLITS: tuple[Split, ...] = ("train", "test")
FOLDER_PREFIX = "folder:"


@dataclass(frozen=True, eq=False)
class LabelledImages:
    """A whole split in memory: 8-bit images with one class each."""

    images: UInt8[Tensor, "count channels height width"]
    labels: Int64[Tensor, " count"]
    classes: tuple[str, ...]

    def __post_init__(self) -> None:
        images, labels = self.images, self.labels
        if images.ndim != 4 or images.dtype != torch.uint8:
            shape = tuple(images.shape)
            raise UserError(
                f"images must be uint8 (count, channels, height, width), got {images.dtype} {shape}"
            )
        if labels.shape != images.shape[:1] or labels.dtype != torch.int64:
            raise UserError(
                f"labels must be int64 of shape ({len(images)},), got {labels.dtype} {tuple(labels.shape)}"
            )
        if len(labels) and (int(labels.min()) < 0 or int(labels.max()) >= len(self.classes)):
            raise UserError(
                f"labels must lie in 0..{len(self.classes) - 1}, got {int(labels.min())}..{int(labels.max())}"
            )

    def __len__(self) -> int:
        return len(self.labels)

    def subset(self, indices: Int64[Tensor, " chosen"] | Sequence[int]) -> LabelledImages:
        """The images at `indices`, in that order."""
        chosen = torch.as_tensor(indices, dtype=torch.int64, device=self.labels.device)
        return LabelledImages(self.images[chosen], self.labels[chosen], self.classes)

    def to(self, device: torch.device | str) -> LabelledImages:
        """The same split on another device."""
        return LabelledImages(self.images.to(device), self.labels.to(device), self.classes)


Reader: TypeAlias = Callable[[Path, Split], LabelledImages]
SizedReader: TypeAlias = Callable[[Path, Split, int], LabelledImages]


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
    folder in which the files are looked for. Photographs of many sizes also have a `sized_reader`, which
    brings them to squares of a given side; `height` and `width` are what `reader` brings them to.
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
    sized_reader: SizedReader | None = None
    files: tuple[RemoteFile, ...] = ()
    folders: tuple[str, ...] = ()

    @property
    def num_classes(self) -> int:
        """How many classes there are."""
        return len(self.classes)


DATASETS: Registry[DatasetInfo] = Registry("dataset")


def list_datasets(pattern: str = "*") -> list[str]:
    """The names of the known datasets that match a shell pattern."""
    return DATASETS.names(pattern)


def resolve_data_dir(data_dir: Path | str | None = None) -> Path:
    """The data folder: the argument, else `TORCHCAPS_DATA`, else `~/.cache/torchcaps/data`."""
    chosen = data_dir or os.environ.get("TORCHCAPS_DATA") or "~/.cache/torchcaps/data"
    return Path(chosen).expanduser()


def dataset_info(name: str, data_dir: Path | str | None = None, side: int = 0) -> DatasetInfo:
    """What is known about dataset `name`, loaded with `side`; for `folder:PATH` it is read off the files."""
    if name.startswith(FOLDER_PREFIX):
        from .readers.image_folder import describe_folder  # imports this module

        return describe_folder(name, resolve_data_dir(data_dir))
    info = DATASETS[name]
    return replace(info, height=side, width=side) if side and info.sized_reader else info


def load_dataset(
    name: str, split: Split, data_dir: Path | str | None = None, *, side: int = 0
) -> LabelledImages:
    """One split of a dataset, in memory.

    Args:
        name: one of `list_datasets()`, or `folder:PATH` for a folder of images, `folder:PATH@64` to resize.
        split: "train" or "test".
        data_dir: see `resolve_data_dir`.
        side: of the squares that photographs of many sizes are cut and resized to; 0 is the dataset's own,
            and other datasets keep their size.
    """
    if split not in SPLITS:
        raise UserError(f"split must be 'train' or 'test', got {split!r}")
    if name.startswith(FOLDER_PREFIX):
        from .readers.image_folder import read_named_folder  # imports this module

        return read_named_folder(name, resolve_data_dir(data_dir), split)
    info, folder = DATASETS[name], resolve_data_dir(data_dir)
    if side and info.sized_reader:
        return info.sized_reader(folder, split, side)
    return info.reader(folder, split)
