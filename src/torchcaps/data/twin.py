"""Writing synthetic images in the file layouts of the publishers, to try readers and pipelines on."""

from __future__ import annotations

import gzip
import pickle
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from torchcaps.core import UserError, unknown_name

from .api import DATASETS, SPLITS, Split
from .examples import LabelledImages
from .readers.cifar10 import BATCHES, CIFAR10
from .readers.idx import IDX_FILES
from .readers.imagenette import CLASSES, SPLIT_FOLDERS
from .readers.smallnorb import MATRIX_TYPES, STEMS
from .synthetic.strokes import synthetic_images

# What `write_twin("folder", ...)` draws: three classes of small colour pictures.
FOLDER_TWIN = replace(
    CIFAR10, name="folder", title="folder of images", height=16, width=16, classes=("a", "b", "c")
)


def write_twin(name: str, folder: Path | str, count: int) -> None:
    """Write `count` synthetic images per split under `folder`, in the official file layout of dataset `name`.

    `load_dataset(name, split, folder)` then gives exactly `synthetic_images(info, split, count)`. The name
    "folder" writes PNG files in a folder per class, which `folder:PATH` reads; they, and those of Imagenette,
    are read sorted by class.
    """
    if name not in _WRITERS:
        raise unknown_name("dataset with a file layout", name, _WRITERS)
    if count < 10:
        raise UserError(f"a twin needs at least 10 images per split, got {count}")
    info = FOLDER_TWIN if name == "folder" else DATASETS[name]
    for split in SPLITS:
        _WRITERS[name](synthetic_images(info, split, count), split, Path(folder))


def _write_idx(subfolder: str) -> Callable[[LabelledImages, Split, Path], None]:
    def write(data: LabelledImages, split: Split, folder: Path) -> None:
        arrays = (data.images[:, 0].numpy(), data.labels.numpy().astype(np.uint8))
        for name, array in zip(IDX_FILES[split], arrays, strict=True):
            header = bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">u4").tobytes()
            _write(folder / subfolder / name, gzip.compress(header + array.tobytes(), mtime=0))

    return write


def _write_cifar10(data: LabelledImages, split: Split, folder: Path) -> None:
    names = BATCHES[split]
    for name, chosen in zip(names, np.array_split(np.arange(len(data)), len(names)), strict=True):
        batch = {
            b"batch_label": name.encode(),
            b"labels": data.labels[chosen].tolist(),
            b"data": data.images[chosen].flatten(1).numpy(),
            b"filenames": [f"{number:05d}.png".encode() for number in chosen],
        }
        _write(folder / "cifar-10-batches-py" / name, pickle.dumps(batch, protocol=2))


def _write_svhn(data: LabelledImages, split: Split, folder: Path) -> None:
    from scipy.io import savemat

    digits = np.where(data.labels == 0, 10, data.labels).astype(np.uint8)[:, None]
    path = folder / "svhn" / f"{split}_32x32.mat"
    path.parent.mkdir(parents=True, exist_ok=True)
    savemat(path, {"X": data.images.permute(2, 3, 1, 0).numpy(), "y": digits}, do_compression=True)


def _write_smallnorb(data: LabelledImages, split: Split, folder: Path) -> None:
    number = np.arange(len(data))
    instances = np.array([4, 6, 7, 8, 9] if split == "train" else [0, 1, 2, 3, 5])
    views = np.stack(
        [instances[number % 5], number // 5 % 9, number // 45 % 18 * 2, number // 810 % 6], axis=1
    )
    parts = {
        "dat": data.images.numpy(),
        "cat": data.labels.numpy().astype("<i4"),
        "info": views.astype("<i4"),
    }
    for part, array in parts.items():
        _write(
            folder / "smallnorb" / f"{STEMS[split]}-{part}.mat.gz", gzip.compress(pack_matrix(array), mtime=0)
        )


def pack_matrix(array: NDArray[Any]) -> bytes:
    """An array in smallNORB's binary format; see `read_matrix`."""
    code = next(code for code, kind in MATRIX_TYPES.items() if np.dtype(kind) == array.dtype)
    sizes = (*array.shape, *[1] * (3 - array.ndim))
    return np.array([code, array.ndim, *sizes], "<u4").tobytes() + array.tobytes()


def _write_imagenette(data: LabelledImages, split: Split, folder: Path) -> None:
    _write_pictures(data, folder / "imagenette2-64" / SPLIT_FOLDERS[split], tuple(CLASSES))


def _write_folder(data: LabelledImages, split: Split, folder: Path) -> None:
    _write_pictures(data, folder / split, data.classes)


def _write_pictures(data: LabelledImages, folder: Path, class_folders: tuple[str, ...]) -> None:
    for number, (image, label) in enumerate(zip(data.images, data.labels, strict=True)):
        path = folder / class_folders[int(label)] / f"{number:05d}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image.permute(1, 2, 0).numpy()).save(path, compress_level=1)  # noise hardly packs


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


_WRITERS: dict[str, Callable[[LabelledImages, Split, Path], None]] = {
    "mnist": _write_idx("MNIST/raw"),
    "fashion_mnist": _write_idx("FashionMNIST/raw"),
    "cifar10": _write_cifar10,
    "svhn": _write_svhn,
    "smallnorb": _write_smallnorb,
    "imagenette": _write_imagenette,
    "folder": _write_folder,
}
