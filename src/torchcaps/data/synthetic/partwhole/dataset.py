"""PartWhole as a dataset that a recipe names, with settings as in `partwhole:clutter=0.5,classes=6`."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from torchcaps.core import UserError, derive_seed

from ...api import DatasetInfo, Frame, Split
from ...examples import LabelledImages
from ...family import read_settings, register_family
from .design import Design
from .draw import PartWhole, draw_partwhole

_COUNT = 1000  # images that are drawn of no split, where nothing else is said
_SPLITS: dict[str, Split] = {"train": "train", "test": "test"}


@dataclass(frozen=True, kw_only=True)
class PartWholeSettings(Design):
    """A design, how many images of it there are, and from which seed they are drawn."""

    train: int = 20_000
    test: int = 5_000
    seed: int = 0

    @property
    def design(self) -> Design:
        """The settings of the images alone."""
        return Design(**{field.name: getattr(self, field.name) for field in fields(Design)})

    @property
    def class_names(self) -> tuple[str, ...]:
        """The numbers of the classes, which have no other names."""
        return tuple(str(number) for number in range(self.classes))

    def count_of(self, split: Split) -> int:
        """How many images a split has."""
        return self.train if split == "train" else self.test

    def seed_of(self, split: Split) -> int:
        """Splits have random streams of their own."""
        return derive_seed(self.seed, split)


def read_partwhole(
    data_dir: Path, split: Split, frame: Frame | None = None, *, settings: PartWholeSettings
) -> LabelledImages:
    """One split, drawn at the size of the network."""
    del data_dir
    if frame is not None and frame.height != frame.width:
        raise UserError(f"partwhole draws square images, got {frame.width}x{frame.height}")
    drawn = _drawn(settings if frame is None else replace(settings, size=frame.height), split)
    return drawn.map(torch.clone)  # a run that draws its examples anew changes its copy alone


@lru_cache(maxsize=8)  # many runs of an experiment read the same images
def _drawn(settings: PartWholeSettings, split: Split) -> LabelledImages:
    found = draw_partwhole(settings.count_of(split), settings.design, seed=settings.seed_of(split))
    made = LabelledImages(found.images, found.labels, settings.class_names)
    return made.drawn_by(partial(_draw_anew, settings.design))


def _draw_anew(
    design: Design, count: int, random: torch.Generator, device: torch.device
) -> tuple[Tensor, Tensor]:
    seed = int(torch.randint(1 << 62, (), generator=random))
    found = draw_partwhole(count, design, seed=seed, device=device)
    return found.images, found.labels


def _describe(settings: PartWholeSettings) -> DatasetInfo:
    return DatasetInfo(
        name="partwhole",
        title="objects that differ in the relation of their parts alone",
        channels=1,
        height=settings.size,
        width=settings.size,
        classes=settings.class_names,
        mean=(0.171,),  # of the default settings
        std=(0.219,),
        num_train=settings.train,
        num_test=settings.test,
        licence="made by the library",
        reader=partial(read_partwhole, settings=settings),
        framed_reader=partial(read_partwhole, settings=settings),
    )


PARTWHOLE = register_family("partwhole", PartWholeSettings, _describe)


def partwhole_settings(name: str) -> PartWholeSettings:
    """The settings of `partwhole` or `partwhole:key=value,...`."""
    if name.partition(":")[0] != PARTWHOLE.name:
        raise UserError(f"{name} is not drawn from parts; use partwhole or partwhole:clutter=0.5")
    return read_settings(PartWholeSettings, name)


class Named(NamedTuple):
    """Images with their truth, and what they were drawn from."""

    drawn: PartWhole
    design: Design
    seed: int


def draw_named(
    name: str, *, split: str | None = None, count: int | None = None, seed: int | None = None
) -> Named:
    """The images of a name with settings.

    Args:
        name: Such as `partwhole:size=64,seed=3`.
        split: "train" or "test": the images that recipes of this name see, as many as it says.
        count: How many; by default those of the split, or 1,000.
        seed: By default that of the name; a split has its own.
    """
    settings = partwhole_settings(name)
    usual, chosen = _COUNT, settings.seed if seed is None else seed
    if split is not None:
        if split not in _SPLITS:
            raise UserError(f"a split of partwhole is {' or '.join(_SPLITS)}, got {split!r}")
        if seed is not None:
            raise UserError("a split has the seed of its name, as in partwhole:seed=3; leave --seed out")
        usual, chosen = settings.count_of(_SPLITS[split]), settings.seed_of(_SPLITS[split])
    drawn = draw_partwhole(usual if count is None else count, settings.design, seed=chosen)
    return Named(drawn, settings.design, chosen)
