"""The explanation of one image: its class, the parse tree, where the evidence lies, and how usual it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from .contribution import Contributions
from .places import CapsuleMap
from .tree import ParseTree

FEW_IMAGES = 20  # images of which a share is no number to go by


@dataclass(frozen=True)
class Source:
    """An image to explain: bytes (1, channels, height, width), what to call it, and what is known of it."""

    name: str
    image: Tensor
    label: int | None = None
    preparation: str | None = None  # what was done to a photograph, in words


def rank_in_words(share: float, count: int) -> str:
    """A share of `count` images; how many they are where a percentage of so few would say too much."""
    return f"{round(share * count)} of {count}" if count < FEW_IMAGES else f"{share:.0%} of {count:,}"


@dataclass(frozen=True)
class Usual:
    """How a tree compares with those of validation images that were read as the same class."""

    surprise: float  # bits, children one by one
    key_surprise: float  # bits, the whole tree
    share: float | None  # of the others that are less surprising; None where there are none
    others: NDArray[np.float64]

    def as_json(self) -> dict[str, Any]:
        """Plain numbers; None for infinite surprise, of a class that no training image was read as."""
        bits = {"surprise_bits": self.surprise, "key_surprise_bits": self.key_surprise}
        return {
            **{name: value if np.isfinite(value) else None for name, value in bits.items()},
            "share_less_surprising": self.share,
            "compared_with": len(self.others),
        }


class Heat(NamedTuple):
    """A map on the image, and how much its strongest capsules exceed the mean ones."""

    image: Tensor  # (height, width)
    peak: float  # as `map_peaks` has it; 0 where there is nothing on the map


@dataclass(frozen=True)
class Explanation:
    """Everything that is computed for one image."""

    source: Source
    shown: Tensor  # (channels, height, width) in [0, 1]
    activations: Tensor  # (classes,), of the network as it is
    tree: ParseTree  # of the quantized network
    maps: tuple[CapsuleMap, ...]
    evidence: Heat | None  # None where capsules have no place on the image
    contributions: Contributions | None  # of this one image; None where class capsules are no sums of votes
    contribution: Heat | None  # None without either
    contribution_obstacle: str | None  # why there are no contributions
    perturbed: Tensor | None  # in [0, 1]; None where the network has no decoder
    usual: Usual | None  # None where the data of the run is not at hand
    hint: str = ""  # what a photographed digit would be if it were turned, where that is surer

    @property
    def runner_up(self) -> int | None:
        """The class with the second highest activation; None where there is but one class."""
        order = self.activations.argsort(descending=True, stable=True)
        return int(order[1]) if len(order) > 1 else None

    def as_json(self, classes: Sequence[str]) -> dict[str, Any]:
        """Plain data, enough to draw everything from."""
        winner = int(self.activations.argmax())
        values = self.activations.tolist()
        return {
            "image": self.source.name,
            "hint": self.hint or None,
            "preparation": self.source.preparation,
            "class": classes[winner],
            "quantized_class": classes[self.tree.chosen],
            "label": None if self.source.label is None else classes[self.source.label],
            "activation": values[winner],
            "runner_up": None if self.runner_up is None else classes[self.runner_up],
            "margin": None if self.runner_up is None else values[winner] - values[self.runner_up],
            "activations": dict(zip(classes, values, strict=True)),
            "typicality": None if self.usual is None else self.usual.as_json(),
            "has_decoder": self.perturbed is not None,
            **_heat_as_json("saliency", self.evidence),
            **_heat_as_json("contribution", self.contribution),
            "contribution_against": None if self.contributions is None else float(self.contributions.against),
            "contribution_obstacle": self.contribution_obstacle,
            "tree": asdict(self.tree),
        }


def _heat_as_json(name: str, heat: Heat | None) -> dict[str, Any]:
    if heat is None:
        return {name: None, f"{name}_peak": None}
    return {name: heat.image.tolist(), f"{name}_peak": heat.peak}
