"""What pruning may remove from a network, as its family declares it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol, TypeAlias, runtime_checkable

from jaxtyping import Int64
from torch import Tensor, nn

from torchcaps.layers import FcCaps, LocalConvCaps2d, LocalDeconvCaps2d

from .network import ModelConfig

Cut: TypeAlias = tuple[Tensor | None, ...]  # indices to keep along each axis of a tensor; None keeps all


class ConvStep(NamedTuple):
    """A convolution with what follows it, and where both stand in the state dict."""

    name: str
    conv: nn.Conv2d
    tail: nn.Module  # activation and normalisation
    norm: str = ""  # name of the last part of the tail, where that is a normalisation


class Removable(NamedTuple):
    """A chain of convolutions, the convolution that reads the last of them, and the capsules above.

    What may be removed: channels of the chain, children of `parents`, and whole types of children, with the
    filters of the reader that make them.
    """

    steps: Sequence[ConvStep]
    reader: ConvStep
    is_padded: bool  # whether the reader sees zeros around the map
    parents_name: str
    parents: FcCaps
    types: int  # types of children with filters of their own in the reader; 1 where filters must stay
    selects: bool  # whether the config can say that only some children vote


class KeptSizes(NamedTuple):
    """How much of a network is left."""

    widths: tuple[int, ...]  # channels of each step
    types: int
    voters: int  # children that have a vote; 0 means all


@runtime_checkable
class Shrinkable(Protocol):
    """A network from which parts that are zero can be removed."""

    config: ModelConfig

    def removable(self) -> Removable:
        """The parts that may go."""
        ...

    def resized(self, kept: KeptSizes) -> ModelConfig:
        """The config of the network that is left."""
        ...


@runtime_checkable
class OnTrunk(Protocol):
    """A network on a submodule `trunk` whose channels can be removed; its config has `trunk_widths`."""

    config: ModelConfig

    def get_submodule(self, target: str) -> nn.Module:
        """That of `nn.Module`: from Python 3.12 on a check of types does not see submodules as attributes."""
        ...

    @property
    def least_channels(self) -> int:
        """Channels of the trunk's last map that the head cannot do without."""
        ...

    def head_cuts(self, channels: Int64[Tensor, " kept"]) -> dict[str, Cut]:
        """What is left of each tensor of the head when the trunk's last map keeps these channels."""
        ...


class RoutedLevels(NamedTuple):
    """The routed layers of a network that makes maps smaller and larger again.

    Attributes:
        stem_kernel: Side of the convolution before them.
        down: From the first to the deepest one, in the order in which they run.
        up: From the one above the deepest to that of the classes; later children of a layer may come from
            `down`, past the deepest one.
    """

    stem_kernel: int
    down: tuple[LocalConvCaps2d | LocalDeconvCaps2d, ...]
    up: tuple[LocalConvCaps2d | LocalDeconvCaps2d, ...]


@runtime_checkable
class ShrinksAndGrows(Protocol):
    """A network of such levels."""

    def routed_levels(self) -> RoutedLevels:
        """Its routed layers."""
        ...
