"""CIFAR-10 in the publisher's Python batches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from jaxtyping import Int64, UInt8
from torch import Tensor

from ..api import DATASETS, DatasetInfo, RemoteFile, Split
from ..examples import LabelledImages
from .files import DamagedFileError, find_file
from .restricted_pickle import PickledArray, RefusedPickleError, load_restricted

BATCHES: dict[Split, tuple[str, ...]] = {
    "train": tuple(f"data_batch_{number}" for number in range(1, 6)),
    "test": ("test_batch",),
}


def read_cifar10(data_dir: Path, split: Split) -> LabelledImages:
    """One split of CIFAR-10, batches in order."""
    parts = [read_batch(find_file(CIFAR10, name, data_dir)) for name in BATCHES[split]]
    images, labels = (torch.cat(column) for column in zip(*parts, strict=True))
    return LabelledImages(images, labels, CIFAR10.classes)


def read_batch(path: Path) -> tuple[UInt8[Tensor, "count 3 32 32"], Int64[Tensor, " count"]]:
    """The images and labels of one batch file; code inside the file is refused, not run."""
    data = path.read_bytes()
    try:
        return _parse_batch(load_restricted(data))
    except RefusedPickleError as error:
        problem = f"not a CIFAR-10 batch of about 31,035,600 bytes: {error}; it has {len(data)} bytes"
        raise DamagedFileError(path, problem, "cifar10") from error


def _parse_batch(batch: Any) -> tuple[Tensor, Tensor]:
    pixels, labels = _entry(batch, "data"), _entry(batch, "labels")
    if not isinstance(pixels, PickledArray) or not isinstance(labels, list):
        raise RefusedPickleError("it lacks an array `data` or a list `labels`")
    rows = pixels.array()
    if rows.ndim != 2 or rows.shape[1] != 3 * 32 * 32 or len(rows) != len(labels):
        raise RefusedPickleError(
            f"its pixels have shape {rows.shape} for {len(labels)} labels, not (labels, 3072)"
        )
    if not all(type(label) is int and 0 <= label < 10 for label in labels):
        raise RefusedPickleError("it has labels that are not whole numbers from 0 to 9")
    return torch.from_numpy(rows).view(-1, 3, 32, 32), torch.tensor(labels, dtype=torch.int64)


def _entry(batch: Any, key: str) -> Any:
    if not isinstance(batch, dict):
        raise RefusedPickleError(f"it holds a {type(batch).__name__} where a dictionary belongs")
    return batch.get(key.encode(), batch.get(key))


def _part(name: str, size: int, md5: str, split: Split) -> RemoteFile:
    return RemoteFile(f"cifar-10-batches-py/{name}", size=size, md5=md5, split=split)


CIFAR10 = DATASETS.register("cifar10")(
    DatasetInfo(
        name="cifar10",
        title="CIFAR-10 tiny photographs",
        channels=3,
        height=32,
        width=32,
        classes=("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"),
        mean=(0.4914, 0.4822, 0.4465),
        std=(0.2470, 0.2435, 0.2616),
        num_train=50_000,
        num_test=10_000,
        licence="no formal licence; research use with citation (A. Krizhevsky, 2009)",
        reader=read_cifar10,
        files=(
            RemoteFile(
                "cifar-10-python.tar.gz",
                url="https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz",
                size=170_498_071,
                sha256="6d958be074577803d12ecdefd02955f39262c83c16fe9348329d7fe0b5c001ce",
                md5="c58f30108f718f92721af3b95e74349a",
                contains=(
                    _part("data_batch_1", 31_035_704, "c99cafc152244af753f735de768cd75f", "train"),
                    _part("data_batch_2", 31_035_320, "d4bba439e000b95fd0a9bffe97cbabec", "train"),
                    _part("data_batch_3", 31_035_999, "54ebc095f3ab1f0389bbae665268c751", "train"),
                    _part("data_batch_4", 31_035_696, "634d18415352ddfa80567beed471001a", "train"),
                    _part("data_batch_5", 31_035_623, "482c414d41f54cd18b22e5b47cb7c3cb", "train"),
                    _part("test_batch", 31_035_526, "40351d587109b95175f43aff81a1287e", "test"),
                ),
            ),
        ),
        folders=("cifar-10-batches-py", "cifar10/cifar-10-batches-py", "cifar10", "CIFAR10", "."),
    )
)
