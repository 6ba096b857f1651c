"""Splits by viewpoint: training images show familiar views, test images other instances in chosen views."""

from __future__ import annotations

from typing import Literal, TypeAlias

import torch
from jaxtyping import Bool
from torch import Tensor

from ..api import Split

Views: TypeAlias = Literal["all", "familiar", "novel"]


def chosen_views(split: Split, views: Views, is_familiar: Bool[Tensor, " count"]) -> Bool[Tensor, " count"]:
    """Which images of a split are used: familiar ones for training, those of `views` for testing."""
    if split == "train":
        return is_familiar
    if views == "all":
        return torch.ones_like(is_familiar)
    return is_familiar if views == "familiar" else ~is_familiar
