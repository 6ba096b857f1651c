"""SVHN cropped digits in the publisher's MATLAB files."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeGuard

import numpy as np
import torch
from numpy.typing import NDArray

from ..api import DATASETS, DatasetInfo, RemoteFile, Split
from ..examples import LabelledImages
from .files import DamagedFileError, check_labels, find_file
from .matlab import read_matlab


def read_svhn(data_dir: Path, split: Split) -> LabelledImages:
    """One split of SVHN; the files write digit 0 as class 10, which becomes label 0."""
    path = find_file(SVHN, f"{split}_32x32.mat", data_dir)
    content = read_matlab(path, "svhn", ["X", "y"])
    pixels, digits = content.get("X"), content.get("y")
    if not _is_array(pixels, "u") or pixels.itemsize != 1 or not _is_array(digits, "iuf"):
        held = ", ".join(f"{key} of {value.dtype}" for key, value in sorted(content.items()))
        problem = f"should hold bytes X and numbers y, but holds {held or 'neither'}"
        raise DamagedFileError(path, problem, "svhn")
    digits = digits.reshape(-1)
    if pixels.shape != (32, 32, 3, len(digits)):
        problem = (
            f"X should have shape (32, 32, 3, {len(digits)}), an image per label, but has {pixels.shape}"
        )
        raise DamagedFileError(path, problem, "svhn")
    check_labels(digits, (1, 10), path, "svhn")
    labels = digits.astype(np.int64)
    if (labels != digits).any():
        problem = f"labels should be whole numbers, but one is {digits[labels != digits][0]}"
        raise DamagedFileError(path, problem, "svhn")
    images = np.ascontiguousarray(pixels.transpose(3, 2, 0, 1))
    return LabelledImages(torch.from_numpy(images), torch.from_numpy(labels % 10), SVHN.classes)


def _is_array(value: Any, kinds: str) -> TypeGuard[NDArray[Any]]:
    """Whether a variable is there as an array of these kinds of numbers, not a cell, text or sparse one."""
    return isinstance(value, np.ndarray) and value.dtype.kind in kinds


SVHN = DATASETS.register("svhn")(
    DatasetInfo(
        name="svhn",
        title="SVHN house-number digits, cropped",
        channels=3,
        height=32,
        width=32,
        classes=tuple("0123456789"),
        mean=(0.4377, 0.4438, 0.4728),
        std=(0.1980, 0.2010, 0.1970),
        num_train=73_257,
        num_test=26_032,
        licence="non-commercial use only (Netzer et al., 2011)",
        reader=read_svhn,
        files=(  # the publisher has no https: the checksums alone tell whether a file is genuine
            RemoteFile(
                "svhn/train_32x32.mat",
                url="http://ufldl.stanford.edu/housenumbers/train_32x32.mat",
                size=182_040_794,
                sha256="435e94d69a87fde4fd4d7f3dd208dfc32cb6ae8af2240d066de1df7508d083b8",
                md5="e26dedcc434d2e4c54c9b2d4a06d8373",
                split="train",
            ),
            RemoteFile(
                "svhn/test_32x32.mat",
                url="http://ufldl.stanford.edu/housenumbers/test_32x32.mat",
                size=64_275_384,
                sha256="cdce80dfb2a2c4c6160906d0bd7c68ec5a99d7ca4831afa54f09182025b6a75b",
                md5="eb5a983be6a315427106f1b164d9cef3",
                split="test",
            ),
        ),
        folders=("svhn", "SVHN", "."),
    )
)
