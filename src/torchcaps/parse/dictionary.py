"""How many parse trees there are: couplings as keys, counted for each class (thesis, Entropy)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import log2
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor

from torchcaps.core import UserError

from .quantize import quantization_indices


@dataclass(frozen=True)
class Keys:
    """The key of each image: where all children stand in the couplings to its predicted class."""

    indices: NDArray[np.integer[Any]]  # (images, in_caps)
    predicted: NDArray[np.int64]  # (images,)
    levels: int
    num_classes: int

    def __len__(self) -> int:
        return len(self.predicted)

    def as_bytes(self) -> list[bytes]:
        """One text of indices for each image; different keys are different texts."""
        return [row.tobytes() for row in np.ascontiguousarray(self.indices)]


@dataclass
class KeyCollector:
    """Takes couplings in batches and keeps one index per child and image, on the device of the couplings.

    Nothing is read from the device before `keys`.
    """

    levels: int
    num_classes: int
    _indices: list[Tensor] = field(default_factory=list, init=False)
    _predicted: list[Tensor] = field(default_factory=list, init=False)
    _is_finite: list[Tensor] = field(default_factory=list, init=False)  # of each batch

    def add(
        self, coupling: Float[Tensor, "batch in_caps out_caps"], predicted: Int[Tensor, " batch"]
    ) -> None:
        """Take in the couplings of the last routed layer, quantized already or not."""
        if coupling.shape[2] != self.num_classes:
            raise UserError(
                f"couplings lead to {coupling.shape[2]} parents, not to {self.num_classes} classes; the "
                "dictionary is that of the last routed layer"
            )
        if predicted.shape != coupling.shape[:1]:
            raise UserError(f"{len(predicted)} predicted classes do not fit {len(coupling)} images")
        chosen = predicted.view(-1, 1, 1).expand(-1, coupling.shape[1], 1)
        to_class = coupling.gather(2, chosen).squeeze(2)
        self._indices.append(quantization_indices(to_class, self.levels))
        self._predicted.append(predicted)
        self._is_finite.append(to_class.isfinite().all())

    def keys(self) -> Keys:
        """All keys so far, read from the device."""
        if not sum(map(len, self._predicted)):
            raise UserError("there are no images to make parse trees of")
        if not torch.stack(self._is_finite).all():
            raise UserError("there are couplings that are not finite, so that images have no parse tree")
        indices = torch.cat(self._indices).cpu().numpy()
        predicted = torch.cat(self._predicted).cpu().numpy()
        return Keys(indices, predicted, self.levels, self.num_classes)


@dataclass(frozen=True)
class ClassTrees:
    """The parse trees of the images predicted as one class, each with the number of images that share it."""

    counts: Mapping[bytes, int]

    @property
    def samples(self) -> int:
        """Images predicted as this class."""
        return sum(self.counts.values())

    @property
    def entropy(self) -> float | None:
        """Bits it takes to name the tree of an image; None where no image was predicted as this class."""
        samples = self.samples
        if not samples:
            return None
        # log of samples / count, not of its inverse: one tree for all images then gives 0, not -0
        bits = sum(count * log2(samples / count) for count in self.counts.values()) / samples
        return min(bits, log2(samples))  # the sum rounds at each tree

    @property
    def bound(self) -> float | None:
        """The entropy if every image had a tree of its own."""
        return log2(self.samples) if self.samples else None


@dataclass(frozen=True)
class Dictionary:
    """The parse trees of all classes."""

    classes: tuple[ClassTrees, ...]
    levels: int
    children: int

    @property
    def num_keys(self) -> int:
        """Trees in all; those of different classes count as different."""
        return sum(len(trees.counts) for trees in self.classes)

    @property
    def entropy(self) -> float:
        """Mean over the classes that were predicted at all, in bits."""
        found = [trees.entropy for trees in self.classes]
        known = [entropy for entropy in found if entropy is not None]
        return sum(known) / len(known)

    @property
    def empty_classes(self) -> tuple[int, ...]:
        """Classes that no image was predicted as; they have no entropy and do not enter the mean."""
        return tuple(number for number, trees in enumerate(self.classes) if not trees.samples)

    def rows(self, class_names: tuple[str, ...] | None = None) -> list[dict[str, Any]]:
        """A row of plain numbers for each class."""
        names = class_names or tuple(map(str, range(len(self.classes))))
        return [
            {
                "class": name,
                "images": trees.samples,
                "keys": len(trees.counts),
                "entropy": trees.entropy,
                "bound": trees.bound,
            }
            for name, trees in zip(names, self.classes, strict=True)
        ]


def count_trees(keys: Keys) -> Dictionary:
    """The dictionary of all keys; keys are compared in full, so that no two are ever taken for one."""
    if not len(keys):
        raise UserError("there are no images whose parse trees could be counted")
    counts: list[Counter[bytes]] = [Counter() for _ in range(keys.num_classes)]
    for key, predicted in zip(keys.as_bytes(), keys.predicted.tolist(), strict=True):
        counts[predicted][key] += 1
    return Dictionary(tuple(map(ClassTrees, counts)), keys.levels, keys.indices.shape[1])
