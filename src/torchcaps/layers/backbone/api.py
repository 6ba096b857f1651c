"""Trunks by name: an architecture and the widths of its prunable groups."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import NamedTuple

from torch import nn

from torchcaps.core import Registry, UserError


class TrunkConvolution(NamedTuple):
    """One convolution of a trunk, as pruning needs to know it.

    Groups are numbered as the widths are; channels of one group are kept or removed together.
    """

    name: str
    norm: str  # the batch norm behind it
    source: int | None  # group of the channels it reads; None where it reads the image
    group: int  # of the channels it writes
    kernel_size: int
    shrinkage: int  # how many times smaller than the image its map is
    is_depthwise: bool = False


class Trunk(nn.Module, ABC):
    """A network from an image to a feature map that says which of its channels belong together."""

    widths: tuple[int, ...]  # channels of each prunable group
    out_channels: int
    stride: int  # how many times smaller than the image the map is

    @abstractmethod
    def convolutions(self) -> list[TrunkConvolution]:
        """Every convolution of the trunk."""


class TrunkVariant(NamedTuple):
    """What is registered under a trunk's name."""

    build: Callable[..., Trunk]  # of widths, and of `in_channels`
    widths: tuple[int, ...]  # channels of each prunable group where nobody gives others


TRUNKS: Registry[TrunkVariant] = Registry("trunk")


def create_trunk(name: str, *, in_channels: int = 3, widths: Sequence[int] | None = None) -> Trunk:
    """Build the trunk registered as `name`; `widths` replaces the channels of each prunable group."""
    build, usual = TRUNKS[name]
    return build(usual if widths is None else widths, in_channels=in_channels)


def list_trunks(pattern: str = "*") -> list[str]:
    """Names of the registered trunks."""
    return TRUNKS.names(pattern)


def require_widths(widths: Sequence[int], expected: int, order: str) -> tuple[int, ...]:
    """`widths` as a tuple if they are `expected` positive numbers, else an error that says their `order`."""
    if len(widths) != expected:
        raise UserError(f"this trunk takes {expected} widths ({order}), got {len(widths)}")
    if min(widths) < 1:
        raise UserError(f"group {list(widths).index(min(widths))} has no channels left ({order})")
    return tuple(widths)
