"""ETH-80: photographs of 80 objects in 41 views each, split by object, azimuth or elevation."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Int64, UInt8
from torch import Tensor

from torchcaps.core import MissingDataError, UserError

from ..api import DatasetInfo, Frame, Split
from ..examples import LabelledImages
from ..family import register_family
from ..fit import fit_picture
from ..folders import opened_picture
from .files import DamagedFileError, read_photograph
from .views import Views, chosen_views

CLASSES = ("apple", "car", "cow", "cup", "dog", "horse", "pear", "tomato")
SIDE = 64
_FOLDERS = ("eth80", "ETH80", "ETH-80", "eth80-cropped-close128", ".")
_NAME = re.compile(r"([a-z]+)(\d+)-(\d{3})-(\d{3})\.png")
_FAMILIAR_TURN = 70  # degrees of azimuth to each side of the front
_FAMILIAR_ELEVATIONS = (66, 68, 90)  # degrees from the zenith: near the horizon
_VIEWS, _FAMILIAR = 41, {"instance": 41, "azimuth": 17, "elevation": 28}  # of each object


class Eth80(NamedTuple):
    """All photographs, and how each was taken."""

    images: UInt8[Tensor, "count 3 height width"]
    labels: Int64[Tensor, " count"]
    instance: Int64[Tensor, " count"]  # 1..10 within its class
    elevation: Int64[Tensor, " count"]  # degrees from the zenith: 0, 22, 35, 45, 66, 68, 90
    azimuth: Int64[Tensor, " count"]  # degrees, 0..338


@dataclass(frozen=True, kw_only=True)
class Eth80Settings:
    """How ETH-80 is split.

    Attributes:
        axis: "instance" trains on all views of the training objects; "azimuth" and "elevation" on those near
            the front or the horizon.
        views: Of the test images, which always show objects that were not trained on.
        fold: 0 to 4, which two of the ten objects of each class are tested on.
    """

    axis: Literal["instance", "azimuth", "elevation"] = "instance"
    views: Views = "all"
    fold: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.fold <= 4:
            raise UserError(f"eth80.fold must lie in 0..4, got {self.fold}")


def read_eth80_views(data_dir: Path, frame: Frame | None = None) -> Eth80:
    """Every photograph in `<class>/<class><instance>/*.png`, brought to the size of `frame`."""
    return _read(_find(data_dir), frame or Frame(SIDE, SIDE))


def read_eth80_masks(data_dir: Path, frame: Frame | None = None) -> Bool[Tensor, "count height width"]:
    """Where each photograph of `read_eth80_views` shows its object, from `maps` beside the photographs."""
    files = _photographs(_find(data_dir))
    with ThreadPoolExecutor() as threads:
        masks = threads.map(partial(_read_mask, frame=frame or Frame(SIDE, SIDE)), files)
        return torch.stack(list(masks))


def read_eth80(
    data_dir: Path, split: Split, frame: Frame | None = None, *, settings: Eth80Settings
) -> LabelledImages:
    """One split by the rules of `settings`."""
    found = read_eth80_views(data_dir, frame)
    is_tested = torch.isin(found.instance, torch.tensor([2 * settings.fold + 1, 2 * settings.fold + 2]))
    is_used = chosen_views(split, settings.views, familiar(found, settings.axis))
    chosen = (is_used & (is_tested if split == "test" else ~is_tested)).nonzero().squeeze(1)
    if not len(chosen):
        raise UserError("eth80:axis=instance has no novel views; choose views=all or another axis")
    return LabelledImages(found.images, found.labels, CLASSES).subset(chosen)


def familiar(taken: Eth80, axis: str) -> Bool[Tensor, " count"]:
    """Which photographs show a familiar view; the one from above has no azimuth and counts as familiar."""
    if axis == "azimuth":
        turn = torch.minimum(taken.azimuth, 360 - taken.azimuth)
        return (turn <= _FAMILIAR_TURN) | (taken.elevation == 0)
    if axis == "elevation":
        return torch.isin(taken.elevation, torch.tensor(_FAMILIAR_ELEVATIONS))
    return torch.ones_like(taken.azimuth, dtype=torch.bool)


def _find(data_dir: Path) -> Path:
    for name in _FOLDERS:
        if all((data_dir / name / category).is_dir() for category in CLASSES):
            return data_dir / name
    raise MissingDataError(
        f"{data_dir} has no ETH-80: none of {', '.join(_FOLDERS)} has the folders {', '.join(CLASSES)}; "
        "name its folder with --data-dir or TORCHCAPS_DATA"
    )


@lru_cache(maxsize=4)  # the splits of many runs are cut from the same photographs
def _read(folder: Path, frame: Frame) -> Eth80:
    files = _photographs(folder)
    taken = [_parse(path) for path in files]
    with ThreadPoolExecutor() as threads:
        images = torch.stack(list(threads.map(partial(read_photograph, frame=frame, dataset="eth80"), files)))
    label, instance, elevation, azimuth = torch.tensor(taken).unbind(1)
    return Eth80(images, label, instance, elevation, azimuth)


def _photographs(folder: Path) -> list[Path]:
    return sorted(path for category in CLASSES for path in (folder / category).glob("*/*.png"))


def _parse(path: Path) -> tuple[int, int, int, int]:
    match = _NAME.fullmatch(path.name)
    if match is None or match[1] not in CLASSES:
        raise DamagedFileError(path, "should be named like cow3-066-117.png", "eth80")
    return CLASSES.index(match[1]), int(match[2]), int(match[3]), int(match[4])


def _read_mask(photograph: Path, frame: Frame) -> Tensor:
    path = photograph.parent / "maps" / f"{photograph.stem}-map.png"
    if not path.is_file():
        raise MissingDataError(f"{path} is missing; masks of ETH-80 lie in maps beside the photographs")
    with opened_picture(path) as picture:
        framed = fit_picture(picture.convert("L"), *frame[:3], is_mask=True)
    return torch.from_numpy(np.asarray(framed) > 127)


def _describe(settings: Eth80Settings) -> DatasetInfo:
    views = _FAMILIAR[settings.axis]
    tested = {"all": _VIEWS, "familiar": views, "novel": _VIEWS - views}[settings.views]
    return DatasetInfo(
        name="eth80",
        title="ETH-80 photographs of objects",
        channels=3,
        height=SIDE,
        width=SIDE,
        classes=CLASSES,
        mean=(0.388, 0.418, 0.617),  # of the training images of fold 0, at 64 px
        std=(0.203, 0.178, 0.172),
        num_train=64 * views,
        num_test=16 * tested,
        licence="research use (Leibe and Schiele, 2003)",
        reader=partial(read_eth80, settings=settings),
        framed_reader=partial(read_eth80, settings=settings),
        folders=_FOLDERS,
    )


register_family("eth80", Eth80Settings, _describe)
