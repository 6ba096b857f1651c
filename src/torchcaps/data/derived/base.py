"""What datasets that are made from the digits of another share."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from torchcaps.core import UserError

from ..api import DATASETS, DatasetInfo, Reader, Split, load_dataset
from ..examples import LabelledImages


def load_base(name: str, data_dir: Path, split: Split) -> LabelledImages:
    """The images that a dataset is made from."""
    found = load_dataset(name, split, data_dir)
    if not isinstance(found, LabelledImages):
        raise UserError(f"base={name} has no classes; choose mnist, mnist5k or fashion_mnist")
    return found


def base_info(name: str) -> DatasetInfo:
    """What is known about the images that a dataset is made from."""
    info = DATASETS[name]
    if info.channels != 1 or info.height != info.width:
        raise UserError(f"base={name} must have square grey images, as mnist, mnist5k and fashion_mnist do")
    return info


def derived_info(base: str, name: str, title: str, pad: int, reader: Reader) -> DatasetInfo:
    """The info of a dataset whose images are those of `base` on `pad` more pixels of black on each side."""
    info = base_info(base)
    share = (info.height / (info.height + 2 * pad)) ** 2  # black pixels lower mean and deviation
    mean = tuple(share * value for value in info.mean)
    moments = zip(info.mean, info.std, mean, strict=True)
    std = tuple((share * (s**2 + m**2) - new**2) ** 0.5 for m, s, new in moments)
    return replace(
        info,
        name=name,
        title=title,
        height=info.height + 2 * pad,
        width=info.width + 2 * pad,
        mean=mean,
        std=std,
        reader=reader,
        framed_reader=None,
    )
