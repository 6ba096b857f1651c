"""Widths of a trunk pruned to a share of its multiply-adds: drawn at random (EagleEye, Li 2020) or even."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from torchcaps.core import UserError, generator

from .trunk_cost import TrunkCost

_BLOCK = 8192  # draws at once: a long search begins with the draws of a short one
_BLOCKS = 32  # blocks that are drawn of a range before it is given up
# share that stays, and the highest ratio for it (Li 2020)
_RANGES = ((0.0, 0.95), (0.25, 0.8), (0.5, 0.7), (0.75, 0.4), (1.0, 0.0))


def usual_range(share: float) -> float:
    """The highest ratio that EagleEye draws for a share of multiply-adds, linear between published ones."""
    for (low, at_low), (high, at_high) in pairwise(_RANGES):
        if low <= share <= high:
            return at_low + (at_high - at_low) * (share - low) / (high - low)
    raise UserError(f"the share of FLOPs to keep must lie above 0 and be at most 1, got {share}")


@dataclass(frozen=True, kw_only=True)
class Target:
    """What pruned widths have to meet.

    Args:
        share: Of the trunk's multiply-adds that is kept.
        tolerance: How far a draw may miss it.
        highest: The largest ratio of a group's channels that may go; by default `usual_range`.
        last: Channels that the last group must keep: a head needs them.
        multiple: Widths are multiples of this, where a group has that many channels; matrix units are fastest
            with multiples of eight.
    """

    share: float
    tolerance: float = 0.005
    highest: float | None = None
    last: int = 1
    multiple: int = 1

    def __post_init__(self) -> None:
        if self.multiple < 1:
            raise UserError(f"widths are multiples of a whole number from 1, got {self.multiple}")
        if not 0 < self.share <= 1:
            raise UserError(f"the share of FLOPs to keep must lie above 0 and be at most 1, got {self.share}")
        if self.highest is not None and not 0 <= self.highest < 1:
            raise UserError(f"the highest ratio must lie in [0, 1), got {self.highest}")

    @property
    def ratio_limit(self) -> float:
        """The highest ratio, chosen or usual."""
        return usual_range(self.share) if self.highest is None else self.highest


class Drawn(NamedTuple):
    """Widths that meet a target, and how they were found."""

    widths: list[tuple[int, ...]]
    draws: int
    lowest: float  # the range of the ratios in the end
    highest: float
    is_narrowed: bool  # whether the range was narrowed because the usual one hardly ever met the target


def widths_at(
    cost: TrunkCost, ratios: Float[Tensor, "draws groups"], target: Target
) -> Int[Tensor, "draws groups"]:
    """Widths after floor(ratio * width) channels of each group are removed, as far as the target allows."""
    return _without(cost, (ratios * cost.full).long(), target)


def _without(cost: TrunkCost, removed: Tensor, target: Target) -> Tensor:
    least = torch.ones_like(cost.full)
    least[-1] = target.last
    multiple = torch.where(cost.full >= target.multiple, target.multiple, 1)
    widths = torch.maximum(cost.full - removed, least)
    nearest = (widths + multiple // 2) // multiple
    lowest = -(-least // multiple) * multiple
    rounded = torch.minimum(nearest, cost.full // multiple) * multiple
    return torch.minimum(torch.maximum(rounded, lowest), cost.full)  # a head may need more than a multiple


def check_reachable(cost: TrunkCost, target: Target) -> None:
    """An error where even the narrowest trunk that the target allows costs more."""
    if target.last > int(cost.full[-1]):
        raise UserError(f"the trunk ends in {int(cost.full[-1])} channels; its head needs {target.last}")
    limit = torch.full((1, len(cost.full)), target.ratio_limit, dtype=torch.float64)
    least = float(cost.share(widths_at(cost, limit, target)))
    if target.share < least - target.tolerance:
        raise UserError(
            f"{target.share:.1%} of the FLOPs cannot be reached: with at most {target.ratio_limit:.0%} of "
            f"each group's channels removed, {least:.1%} are left; ask for at least that"
        )


def even_ratio(cost: TrunkCost, share: float) -> float:
    """The ratio that, taken from each group alike, leaves `share` if channels could be fractions."""
    low, high = 0.0, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        left = float(cost.share(cost.full.double().unsqueeze(0) * (1 - middle)))
        low, high = (middle, high) if left > share else (low, middle)
    return low


def even_widths(cost: TrunkCost, target: Target) -> tuple[int, ...]:
    """One ratio for all groups; the rounding of the last groups brings the share nearest to the target."""
    check_reachable(cost, target)
    groups = len(cost.full)
    removed = cost.full * even_ratio(cost, target.share)
    is_rounded_up = torch.arange(groups) >= groups - torch.arange(groups + 1).unsqueeze(1)
    widths = _without(cost, torch.where(is_rounded_up, removed.ceil(), removed.floor()).long(), target)
    nearest = (cost.share(widths) - target.share).abs().argmin()
    return tuple(widths[nearest].tolist())


def draw_widths(cost: TrunkCost, target: Target, count: int, seed: int) -> Drawn:
    """Up to `count` different widths whose share meets the target, each ratio uniform within its range.

    Ratios are drawn from [0, `ratio_limit`] and those that miss are dropped. Where that has not given `count`
    after many draws, the range is narrowed to the widest within it whose mean meets the target. The first
    widths do not depend on `count`.
    """
    check_reachable(cost, target)
    limit = target.ratio_limit
    if limit == 0:
        return Drawn([tuple(cost.full.tolist())], 1, 0.0, 0.0, False)
    random, found, draws = generator(seed, "widths"), dict[tuple[int, ...], None](), 0
    lowest, highest = 0.0, limit
    for block in range(2 * _BLOCKS):
        if block == _BLOCKS:
            lowest, highest = _centred_range(cost, target)
        ratios = torch.rand(_BLOCK, len(cost.full), generator=random, dtype=torch.float64)
        widths = widths_at(cost, lowest + (highest - lowest) * ratios, target)
        meets = (cost.share(widths) - target.share).abs() <= target.tolerance
        found |= dict.fromkeys(map(tuple, widths[meets].tolist()))
        draws += _BLOCK
        if len(found) >= count:
            break
    if not found:
        raise UserError(
            f"none of {draws:,} draws came within {target.tolerance} of {target.share:.1%} of the FLOPs: the "
            "trunk has too few channels for that; ask for another share"
        )
    return Drawn(list(found)[:count], draws, lowest, highest, block >= _BLOCKS)


def _centred_range(cost: TrunkCost, target: Target) -> tuple[float, float]:
    """Groups are drawn independently, so the mean share is the share at the mean ratio."""
    middle, limit = even_ratio(cost, target.share), target.ratio_limit
    return (0.0, 2 * middle) if 2 * middle <= limit else (max(0.0, 2 * min(middle, limit) - limit), limit)
