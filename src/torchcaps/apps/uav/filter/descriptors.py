"""The descriptors of all voxels, stored so that a row of cells is read component by component."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from torchcaps.core import UserError

Storage = Literal["float32", "float16", "int8", "product"]
STORAGES: tuple[Storage, ...] = get_args(Storage)
_CODES = 256
_TINY = np.finfo(np.float32).tiny


@dataclass(frozen=True)
class Codebook:
    """A form in which unit vectors are stored, and what it needs to know of all of them.

    `float32` and `float16` hold components. `int8` holds components divided by a scale for each. `product`
    holds for each group of components the number of its nearest centre.

    Attributes:
        storage: The form.
        scales: Of `int8`: (components,).
        centres: Of `product`: (groups, 256, components of a group).
    """

    storage: Storage
    scales: NDArray[np.float32] | None = None
    centres: NDArray[np.float32] | None = None

    def encode(self, vectors: NDArray[np.floating]) -> NDArray[np.generic]:
        """Vectors of (row, column, component) as stored (row, component or group, column)."""
        parts = np.ascontiguousarray(np.moveaxis(np.asarray(vectors, np.float32), 2, 1))
        if self.scales is not None:
            return np.rint(parts / self.scales[:, None]).clip(-127, 127).astype(np.int8)
        if self.centres is None:
            return parts.astype(self.storage)
        return np.stack([self._nearest(group, parts) for group in range(len(self.centres))], axis=1)

    def _nearest(self, group: int, parts: NDArray[np.float32]) -> NDArray[np.uint8]:
        centres = self.centres[group]  # type: ignore[index]  # product storage has centres
        width = centres.shape[1]
        vectors = np.moveaxis(parts[:, group * width : (group + 1) * width], 1, 2)
        return (vectors @ centres.T - (centres**2).sum(1) / 2).argmax(-1).astype(np.uint8)

    def decode(self, stored: NDArray[np.generic]) -> NDArray[np.float32]:
        """What `encode` stored, as vectors of (row, column, component)."""
        if self.centres is None:
            scale = 1 if self.scales is None else self.scales[:, None]
            return np.moveaxis(stored.astype(np.float32) * scale, 1, 2)
        groups = np.arange(len(self.centres))[:, None]
        return np.moveaxis(self.centres[groups, stored], 1, 2).reshape(stored.shape[0], stored.shape[2], -1)

    def tables(self, vector: NDArray[np.float32]) -> NDArray[np.float32]:
        """The numbers that turn stored values into a dot product with a vector.

        One factor for each component, or for `product` what each centre adds, as (groups, 256).
        """
        if self.centres is not None:
            groups, _, width = self.centres.shape
            return np.einsum("gcw,gw->gc", self.centres, vector.reshape(groups, width)).astype(np.float32)
        return vector * self.scales if self.scales is not None else vector

    def fits(self, parts: int) -> bool:
        """Whether it has the finite numbers that its form needs for so many stored components or groups."""
        given = [each for each in (self.scales, self.centres) if each is not None]
        if parts < 1 or not all(np.isfinite(each).all() for each in given):
            return False
        if self.storage == "int8" and self.scales is not None:
            return self.centres is None and self.scales.shape == (parts,)
        if self.storage == "product" and self.centres is not None:
            return (
                self.scales is None and self.centres.ndim == 3 and self.centres.shape[:2] == (parts, _CODES)
            )
        return self.storage in ("float32", "float16") and not given


@dataclass(frozen=True)
class Descriptors:
    """Unit vectors of all voxels.

    Attributes:
        values: As (heading, row, component or group, column); may be a memory map.
        book: The form in which they are stored.
        known: Which cells (row, column) have ground that is known; None: all. The others are no candidates.
    """

    values: NDArray[np.generic]
    book: Codebook
    known: NDArray[np.bool_] | None = None

    @property
    def size(self) -> int:
        """Components of a descriptor."""
        centres = self.book.centres
        return int(self.values.shape[2]) if centres is None else centres.shape[0] * centres.shape[2]

    @property
    def shape(self) -> tuple[int, int, int]:
        """Headings, rows, columns."""
        headings, rows, _, columns = self.values.shape
        return headings, rows, columns

    def tables(self, query: NDArray[np.floating]) -> NDArray[np.float32]:
        """Those of the codebook, for a vector of any length."""
        vector = np.asarray(query, np.float32).ravel()
        if len(vector) != self.size:
            raise UserError(
                f"the map has descriptors of {self.size} components, the image's has {len(vector)}"
            )
        length = float(np.linalg.norm(vector))
        if not np.isfinite(length) or length < _TINY:
            raise UserError("the descriptor of the image is not finite or has no length")
        return self.book.tables(vector / np.float32(length))


def learn_codebook(sample: NDArray[np.floating], storage: Storage, bytes_each: int = 16) -> Codebook:
    """Scales or centres from a sample of (count, component); `bytes_each` is the size of a product code."""
    vectors = np.asarray(sample, np.float32)
    if storage == "int8":
        return Codebook(storage, scales=(np.abs(vectors).max(0).clip(1e-6) / 127).astype(np.float32))
    if storage == "product":
        return Codebook(storage, centres=_learn_centres(vectors, bytes_each))
    if storage not in STORAGES:
        raise UserError(f"descriptors are stored as {', '.join(STORAGES)}, not {storage!r}")
    return Codebook(storage)


def _learn_centres(vectors: NDArray[np.float32], groups: int) -> NDArray[np.float32]:
    if groups < 1 or vectors.shape[1] % groups:
        raise UserError(f"{vectors.shape[1]} components cannot be split into {groups} equal groups")
    if len(vectors) < _CODES:
        raise UserError(f"product codes need a sample of at least {_CODES} descriptors, not {len(vectors)}")
    return np.stack(list(_centres_of(np.split(vectors, groups, axis=1))))


def _centres_of(parts: list[NDArray[np.float32]]) -> Iterator[NDArray[np.float32]]:
    from scipy.cluster.vq import kmeans2

    for number, part in enumerate(parts):
        start = part[np.random.default_rng(number).choice(len(part), _CODES, replace=False)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # a centre may stay unused
            centres, _ = kmeans2(part, start, iter=15, minit="matrix")
        yield centres.astype(np.float32)
