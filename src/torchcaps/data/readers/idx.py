"""MNIST and Fashion-MNIST, which share the idx file format."""

from __future__ import annotations

import math
from functools import partial
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from ..api import DATASETS, DatasetInfo, RemoteFile, Split
from ..examples import LabelledImages
from .files import DamagedFileError, check_labels, check_length, find_file, read_file

IDX_FILES: dict[Split, tuple[str, str]] = {
    "train": ("train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz"),
    "test": ("t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz"),
}


def read_idx(path: Path, num_axes: int, dataset: str) -> NDArray[np.uint8]:
    """The byte array of an idx file: two zeros, type 8, number of axes, big-endian sizes, then the values."""
    data = read_file(path, dataset)
    if data[:4] != bytes([0, 0, 8, num_axes]):
        problem = (
            f"should begin with 00 00 08 {num_axes:02x}, but begins with {data[:4].hex(' ') or 'nothing'}"
        )
        raise DamagedFileError(path, problem, dataset)
    header = 4 + 4 * num_axes
    shape = [int.from_bytes(data[at : at + 4], "big") for at in range(4, header, 4)]
    check_length(data, header + math.prod(shape), path, dataset)
    return np.frombuffer(data, np.uint8, offset=header).reshape(shape).copy()


def read_idx_split(data_dir: Path, split: Split, *, name: str) -> LabelledImages:
    """One split of MNIST or Fashion-MNIST."""
    info = DATASETS[name]
    image_path, label_path = (find_file(info, file, data_dir) for file in IDX_FILES[split])
    images, labels = read_idx(image_path, 3, name), read_idx(label_path, 1, name)
    if len(images) != len(labels):
        problem = f"should hold a label for each of {len(images)} images, but holds {len(labels)}"
        raise DamagedFileError(label_path, problem, name)
    check_labels(labels, (0, info.num_classes - 1), label_path, name)
    return LabelledImages(
        torch.from_numpy(images)[:, None], torch.from_numpy(labels.astype(np.int64)), info.classes
    )


def _remote(folder: str, url: str, rows: dict[str, tuple[int, str, str]]) -> tuple[RemoteFile, ...]:
    return tuple(
        RemoteFile(f"{folder}/{name}", url + name, size, sha256, md5, split)
        for split, names in IDX_FILES.items()
        for name, (size, sha256, md5) in ((name, rows[name]) for name in names)
    )


_MNIST_FILES = {
    "train-images-idx3-ubyte.gz": (
        9_912_422,
        "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
        "f68b3c2dcbeaaa9fbdd348bbdeb94873",
    ),
    "train-labels-idx1-ubyte.gz": (
        28_881,
        "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
        "d53e105ee54ea40749a09fcbcd1e9432",
    ),
    "t10k-images-idx3-ubyte.gz": (
        1_648_877,
        "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
        "9fb629c4189551a2d022fa330f9573f3",
    ),
    "t10k-labels-idx1-ubyte.gz": (
        4_542,
        "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
        "ec29112dd5afa0611ce80d1b7f02629c",
    ),
}

_FASHION_FILES = {
    "train-images-idx3-ubyte.gz": (
        26_421_880,
        "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84",
        "8d4fb7e6c68d591d4c3dfef9ec88bf0d",
    ),
    "train-labels-idx1-ubyte.gz": (
        29_515,
        "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845",
        "25c81989df183df01b3e8a0aad5dffbe",
    ),
    "t10k-images-idx3-ubyte.gz": (
        4_422_102,
        "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073",
        "bef4ecab320f06d8554ea6380940ec79",
    ),
    "t10k-labels-idx1-ubyte.gz": (
        5_148,
        "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5",
        "bb300cfdad3c16e7a12a480ee83cd310",
    ),
}

MNIST = DATASETS.register("mnist")(
    DatasetInfo(
        name="mnist",
        title="MNIST handwritten digits",
        channels=1,
        height=28,
        width=28,
        classes=tuple("0123456789"),
        mean=(0.1307,),
        std=(0.3081,),
        num_train=60_000,
        num_test=10_000,
        licence="CC BY-SA 3.0 (Y. LeCun and C. Cortes)",
        reader=partial(read_idx_split, name="mnist"),
        files=_remote("MNIST/raw", "https://ossci-datasets.s3.amazonaws.com/mnist/", _MNIST_FILES),
        folders=("MNIST/raw", "MNIST", "mnist/raw", "mnist", "."),
    )
)

FASHION_MNIST = DATASETS.register("fashion_mnist")(
    DatasetInfo(
        name="fashion_mnist",
        title="Fashion-MNIST clothing",
        channels=1,
        height=28,
        width=28,
        classes=(
            "T-shirt/top",
            "Trouser",
            "Pullover",
            "Dress",
            "Coat",
            "Sandal",
            "Shirt",
            "Sneaker",
            "Bag",
            "Ankle boot",
        ),
        mean=(0.2860,),
        std=(0.3205,),  # of the thesis; that of the training images is 0.3530
        num_train=60_000,
        num_test=10_000,
        licence="MIT (Zalando SE)",
        reader=partial(read_idx_split, name="fashion_mnist"),
        files=_remote(
            "FashionMNIST/raw",
            # the publisher's repository; the publisher's other address has no https
            "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion/",
            _FASHION_FILES,
        ),
        # not ".": the file names are those of MNIST, so loose files count as MNIST
        folders=("FashionMNIST/raw", "FashionMNIST", "fashion_mnist/raw", "fashion_mnist", "fashion-mnist"),
    )
)
