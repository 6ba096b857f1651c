"""affNIST in the publisher's MATLAB files: columns of 1600 bytes, labels beside them."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from torchcaps.core import MissingDataError

from ..api import DATASETS, Split
from ..examples import LabelledImages
from .files import DamagedFileError, check_labels, search_folders
from .idx import MNIST
from .matlab import read_matlab

_SIDE = 40
_VARIABLE = "affNISTdata"
_PLACES: dict[Split, tuple[str, ...]] = {
    "train": ("training_batches", "training_and_validation_batches"),
    "test": ("test_batches",),
}


def read_affnist(data_dir: Path, split: Split) -> LabelledImages:
    """One split: `test.mat` or `test_batches/*.mat`, or `training_batches/*.mat`, alone or in `affnist`."""
    parts = [read_affnist_file(path) for path in _files(data_dir, split)]
    images, labels = (torch.from_numpy(np.concatenate(arrays)) for arrays in zip(*parts, strict=True))
    return LabelledImages(images.unsqueeze(1), labels, AFFNIST.classes)


def read_affnist_file(path: Path) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Images (count, 40, 40) and labels of one file; pixels are stored column by column."""
    content = read_matlab(path, "affnist", [_VARIABLE])
    try:
        record = content[_VARIABLE][0, 0]
        pixels, labels = record["image"], record["label_int"].reshape(-1)
    except (KeyError, IndexError, ValueError, AttributeError, TypeError) as error:
        raise DamagedFileError(path, f"holds no {_VARIABLE} with image and label_int", "affnist") from error
    if pixels.dtype != np.uint8 or pixels.shape != (_SIDE * _SIDE, len(labels)):
        problem = f"should hold bytes (1600, {len(labels)}), but holds {pixels.dtype} {pixels.shape}"
        raise DamagedFileError(path, problem, "affnist")
    check_labels(labels, (0, 9), path, "affnist")
    images = pixels.T.reshape(-1, _SIDE, _SIDE).transpose(0, 2, 1)
    return np.ascontiguousarray(images), labels.astype(np.int64)


def _files(data_dir: Path, split: Split) -> list[Path]:
    for folder in search_folders(AFFNIST, data_dir):
        if split == "test" and (folder / "test.mat").is_file():
            return [folder / "test.mat"]
        for name in _PLACES[split]:
            files = sorted((folder / name).glob("*.mat"), key=_number)
            if files:
                return files
    wanted = "test.mat or test_batches/*.mat" if split == "test" else "training_batches/*.mat"
    raise MissingDataError(
        f"{data_dir} has no affNIST ({wanted}); unpack the 32x transformed files of "
        "https://www.cs.toronto.edu/~tijmen/affNIST/ in affnist there, or use affnist_style, which needs none"
    )


def _number(path: Path) -> tuple[int, str]:
    digits = re.sub(r"\D", "", path.stem)
    return int(digits or 0), path.name


AFFNIST = DATASETS.register("affnist")(
    replace(
        MNIST,
        name="affnist",
        title="affNIST: 32 random affine versions of each MNIST digit",
        height=_SIDE,
        width=_SIDE,
        mean=(0.064,),  # of MNIST on a larger frame
        std=(0.225,),
        num_train=1_600_000,
        num_test=320_000,
        licence="of MNIST (T. Tieleman)",
        reader=read_affnist,
        files=(),
        folders=("affnist", "affNIST", "affnist/transformed", "."),
    )
)
