"""The parse trees of some images, to compare one with: how usual it is, and which images are nearest."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from threading import Event, Lock, Thread

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from torchcaps.core import UserError
from torchcaps.data import LabelledImages
from torchcaps.parse import Keys, Levels, TreeModel, collect_keys, learn_trees, share_below

from .pool import Pool, find_pool
from .subject import Subject

_NEAREST = 6
_BATCH = 50  # small: the page is asked meanwhile


@dataclass(frozen=True)
class Neighbour:
    """An image of the pool, and how many of its children stand at another level than those of the tree."""

    number: int
    differing: int


@dataclass(frozen=True)
class Compared:
    """One tree beside those of the pool; trees are those of couplings rounded to levels.

    Attributes:
        read_as: The class that the network with rounded couplings gives the image.
        share: Of the half of the pool that is not learnt from, of those read as the same class, that are less
            surprising; None where there is none.
        others: How many these are.
        same: Other images of the pool with exactly this tree.
        children: Capsules that a tree has.
        nearest: Images read as the same class, the most alike first.
    """

    read_as: int
    share: float | None
    others: int
    same: int
    children: int
    nearest: tuple[Neighbour, ...]


class Reference:
    """The trees of a pool, found once in the background; it has a copy of the network to itself.

    Args:
        subject: Whose network it is.
        levels: Of the couplings, as in `torchcaps.parse.quantized`.
    """

    def __init__(self, subject: Subject, levels: Levels = "even") -> None:
        self._subject, self._levels = subject, levels
        self._network = deepcopy(subject.run.model)
        self._lock = Lock()
        self._pooled, self._done, self._stopping = Event(), Event(), Event()
        self._pool: Pool | None = None
        self._known: tuple[Keys, TreeModel, NDArray[np.float64]] | None = None
        self.obstacle = ""  # why there is nothing to compare with
        self._thread = Thread(target=self._prepare, daemon=True, name="trees")
        self._thread.start()

    @property
    def is_ready(self) -> bool:
        """Whether there are trees, or it is known that there are none."""
        return self._done.is_set()

    @property
    def pool(self) -> Pool:
        """The images; waits until they are read."""
        self._pooled.wait()
        if self._pool is None:
            raise UserError(self.obstacle)
        return self._pool

    def wait(self) -> None:
        """Return when the trees are known."""
        self._done.wait()

    def stop(self) -> None:
        """End the work in the background; a thread inside PyTorch would abort a program that ends."""
        self._stopping.set()
        self._thread.join()

    def _prepare(self) -> None:
        try:
            self._pool = find_pool(self._subject)
            self._pooled.set()
            keys = self._collect(self._pool.to_compare)
            learnt, held_out = _halves(keys)
            model = learn_trees(learnt)
            self._known = keys, model, model.child_surprise(held_out)
        except UserError as error:
            self.obstacle = str(error)
        except Exception as error:  # a thread that dies in silence would leave the page waiting
            self.obstacle = f"the comparison failed ({type(error).__name__}: {error})"
        finally:
            self._pooled.set()
            self._done.set()

    def _collect(self, images: LabelledImages) -> Keys:
        parts = []
        for start in range(0, len(images), _BATCH):
            if self._stopping.is_set():
                raise UserError("the program is ending")
            parts.append(self._keys(images.subset(range(start, min(start + _BATCH, len(images))))))
        indices, predicted = (
            np.concatenate([getattr(part, name) for part in parts]) for name in ("indices", "predicted")
        )
        return Keys(indices, predicted, parts[0].levels, parts[0].num_classes)

    def _keys(self, images: LabelledImages) -> Keys:
        with self._lock:
            return collect_keys(self._network, images, self._subject.pipeline, levels=self._levels)

    def _is_same(self, image: Tensor) -> NDArray[np.bool_]:
        """Which images of the pool are the image itself: that it is like itself says nothing."""
        images = self.pool.to_compare.images[:]
        if images.shape[1:] != image.shape[1:]:
            return np.zeros(len(images), dtype=np.bool_)
        return (images == image.to(images.device)).flatten(1).all(1).cpu().numpy()

    def compare(self, image: Tensor) -> Compared:
        """The tree of an image, as bytes (1, channels, height, width), beside those of the pool."""
        self.wait()
        if self._known is None:
            raise UserError(self.obstacle)
        keys, model, surprise = self._known
        device = self._subject.run.device
        labels = torch.zeros(1, dtype=torch.int64, device=device)
        own = self._keys(LabelledImages(image.to(device), labels, self._subject.info.classes))
        read_as = int(own.predicted[0])
        others = surprise[_halves(keys)[1].predicted == read_as]
        others = others[np.isfinite(others)]
        bits = float(model.child_surprise(own)[0])
        differing = (keys.indices != own.indices).sum(1)
        alike = np.flatnonzero((keys.predicted == read_as) & ~self._is_same(image))
        order = alike[np.argsort(differing[alike], kind="stable")]
        return Compared(
            read_as=read_as,
            share=share_below(bits, others) if len(others) else None,
            others=len(others),
            same=int((differing[alike] == 0).sum()),
            children=keys.indices.shape[1],
            nearest=tuple(Neighbour(int(n), int(differing[n])) for n in order[:_NEAREST]),
        )


def _halves(keys: Keys) -> tuple[Keys, Keys]:
    """Images to learn from and others to compare with: every second one, in an order that is random."""
    first, second = (
        Keys(keys.indices[start::2], keys.predicted[start::2], keys.levels, keys.num_classes)
        for start in (0, 1)
    )
    return first, second
