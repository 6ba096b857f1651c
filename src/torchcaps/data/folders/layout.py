"""What a reader of a user's folder finds out before it reads all images."""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from torch import Tensor

from torchcaps.core import MissingDataError, UserError, digest_of

from ..api import Split
from ..examples import Examples
from .listing import by_name, composed
from .unopened import opening

_VALIDATION_FOLDERS = ("val", "valid", "validation")
SPLIT_FOLDERS: dict[Split, tuple[str, ...]] = {"train": ("train",), "test": ("test", *_VALIDATION_FOLDERS)}
_TEST_SHARE = 0.2
_GLANCE = 4096  # bytes of a file that are read to tell it from others of its name and size


@dataclass(frozen=True)
class FolderContent:
    """A folder in the layout of one task."""

    classes: tuple[str, ...]
    images: Mapping[Split, Sequence[Path]]
    read: Callable[[Path], Tensor]  # one of them, as bytes (channels, height, width)
    examples: Callable[[Split], Examples]
    validation: Callable[[], Examples] | None = None  # where the folder says which images validate

    @property
    def channels(self) -> int:
        """Channels of all images."""
        return int(self.sample(1)[0].shape[0])

    def count(self, split: Split) -> int:
        """Images of a split."""
        return len(self.images[split])

    def sample(self, most: int) -> list[Tensor]:
        """At most so many evenly spaced training images."""
        train = self.images["train"]
        return [self.read(path) for path in train[:: step_to(most, len(train))]]


def step_to(most: int, count: int) -> int:
    """How far apart `most` or fewer of `count` things are that are evenly spaced."""
    return -(-count // most)


def digest_of_files(files: Sequence[Path]) -> str:
    """What tells files apart that have other names, folders or contents, or come in another order.

    Of the contents, the size and some bytes in the middle count: large files need not be read whole.
    """
    return digest_of("\n".join(map(_told_apart, files))).hex()


def _told_apart(path: Path) -> str:
    with opening(path), path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(size // 2)
        middle = zlib.crc32(file.read(_GLANCE))
    return f"{composed(path.parent.name)}/{composed(path.name)} {size} {middle}"


def has_split_folders(root: Path) -> bool:
    """Whether the folder says which images train and which test; `valid` alone may be the name of a class."""
    return any((root / name).is_dir() for name in ("train", "test", "val"))


def split_folder(root: Path, split: Split) -> Path:
    """The folder of a split: `train`, and `test`, or `val` where there is no `test`."""
    _require_one_validation_folder(root)
    for name in SPLIT_FOLDERS[split]:
        if (root / name).is_dir():
            return root / name
    raise MissingDataError(f"{root} has no folder {' or '.join(SPLIT_FOLDERS[split][:2])}")


def validation_folder(root: Path) -> Path | None:
    """The folder `val`, `valid` or `validation` beside `test`; without `test` it is for testing."""
    _require_one_validation_folder(root)
    found = [root / name for name in _VALIDATION_FOLDERS if (root / name).is_dir()]
    return found[0] if found and (root / "test").is_dir() else None


def _require_one_validation_folder(root: Path) -> None:
    found = [name for name in _VALIDATION_FOLDERS if (root / name).is_dir()]
    if len(found) > 1:
        raise UserError(
            f"{root} has the folders {' and '.join(found)}, which mean the same; keep one of them"
        )


def split_by_name(files: Sequence[Path]) -> dict[Split, list[Path]]:
    """A fifth of the files for testing, chosen by their names: the same ones each time, on each machine."""
    if len(files) < 2:
        raise UserError(f"{files[0]} is the only image, and one is set aside for testing: add some")
    count = max(1, round(_TEST_SHARE * len(files)))
    test = set(sorted(files, key=lambda path: digest_of(composed(path.name)))[:count])
    return {"train": [path for path in files if path not in test], "test": sorted(test, key=by_name)}
