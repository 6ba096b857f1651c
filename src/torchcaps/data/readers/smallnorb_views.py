"""smallNORB by viewpoint (Hinton 2018, section 5.1): some azimuths or elevations train, others test."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Literal

import torch
from jaxtyping import Bool
from torch import Tensor

from ..api import DatasetInfo, Split
from ..examples import LabelledImages
from ..family import register_family
from .smallnorb import SMALLNORB, SmallNorbInfo, read_smallnorb, read_smallnorb_info
from .views import Views, chosen_views

FAMILIAR_AZIMUTHS = (300, 320, 340, 0, 20, 40)
FAMILIAR_ELEVATIONS = (30, 35, 40)


@dataclass(frozen=True, kw_only=True)
class SmallNorbViews:
    """The axis along which views are split, and the views of the test images."""

    axis: Literal["azimuth", "elevation"] = "azimuth"
    views: Views = "all"


def familiar(taken: SmallNorbInfo, axis: str) -> Bool[Tensor, " count"]:
    """Which pairs show a familiar view."""
    if axis == "azimuth":
        return torch.isin(taken.azimuth, torch.tensor(FAMILIAR_AZIMUTHS))
    return torch.isin(taken.elevation, torch.tensor(FAMILIAR_ELEVATIONS))


def read_smallnorb_views(data_dir: Path, split: Split, *, settings: SmallNorbViews) -> LabelledImages:
    """The pairs of a split in the views that are asked for."""
    found = read_smallnorb(data_dir, split)
    is_familiar = familiar(read_smallnorb_info(data_dir, split), settings.axis)
    return found.subset(chosen_views(split, settings.views, is_familiar).nonzero().squeeze(1))


def _describe(settings: SmallNorbViews) -> DatasetInfo:
    counts = {"all": 24_300, "familiar": 8_100, "novel": 16_200}
    return replace(
        SMALLNORB,
        name="smallnorb_views",
        title="smallNORB, split by viewpoint",
        num_train=8_100,
        num_test=counts[settings.views],
        reader=partial(read_smallnorb_views, settings=settings),
    )


register_family("smallnorb_views", SmallNorbViews, _describe)
