"""A season stack: orthophotos of one place on several dates, on one grid of pixels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from torchcaps.core import MissingDataError, UserError
from torchcaps.storage import Form, read_arrays, write_arrays

_FORMS = {
    "images": Form("u", 4),
    "known": Form("u", 1),
    "names": Form("U", 1),
    "corner": Form("f", 1),
    "crs": Form("U", 0),
}
_SHOWN = 0.9  # of the ground around a place


@dataclass(frozen=True, eq=False)
class SeasonStack:
    """RGB images of the same ground, north up.

    Attributes:
        images: (dates, 3, height, width).
        known: Which pixels were photographed, (dates, height, width); others are black.
        names: What each date is called.
        west: Western edge in metres of the projection.
        north: Northern edge in metres.
        pixel: Side of a pixel in metres.
        crs: The projection, as text that pyproj reads.
    """

    images: NDArray[np.uint8]
    known: NDArray[np.bool_]
    names: tuple[str, ...]
    west: float
    north: float
    pixel: float
    crs: str

    def __post_init__(self) -> None:
        shape = self.images.shape
        if self.images.dtype != np.uint8 or len(shape) != 4 or shape[1] != 3 or 0 in shape:
            raise UserError(f"a season stack holds bytes of (dates, 3, height, width), not {shape}")
        if self.known.shape != (shape[0], *shape[2:]) or len(self.names) != shape[0]:
            raise UserError("a season stack needs a name and a mask of known pixels for each date")
        if not (self.pixel > 0 and all(map(math.isfinite, (self.pixel, self.west, self.north)))):
            raise UserError("a season stack needs a finite corner and a positive size of its pixels")

    @property
    def width(self) -> int:
        """Pixels from west to east."""
        return int(self.images.shape[3])

    @property
    def height(self) -> int:
        """Pixels from north to south."""
        return int(self.images.shape[2])

    @property
    def south(self) -> float:
        """Southern edge in metres."""
        return self.north - self.height * self.pixel

    def centres_of(self, x: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.float32]:
        """Column and row (from the north) at places in metres; whole numbers are middles of pixels."""
        columns, rows = (x - self.west) / self.pixel - 0.5, (self.north - y) / self.pixel - 0.5
        return np.stack([columns, rows], axis=-1).astype(np.float32)

    @property
    def ground(self) -> NDArray[np.bool_]:
        """Which pixels show ground, (dates, height, width): entirely black ones do not, known or not."""
        return np.asarray(self.known & self.images.any(1))

    @cached_property
    def _ground_always(self) -> NDArray[np.bool_]:
        return np.asarray(self.ground.all(0))

    def shows(self, centres: NDArray[np.floating], reach: float) -> NDArray[np.bool_]:
        """Whether all dates show the ground around pixels (column, row), up to `reach` of them to each side.

        A tenth of it may be missing.
        """
        first, end = (np.maximum(edge, 0).astype(int) for edge in (centres - reach, centres + reach + 1))
        parts = (self._ground_always[y0:y1, x0:x1] for (x0, y0), (x1, y1) in zip(first, end, strict=True))
        return np.array([part.mean() >= _SHOWN for part in parts], bool)

    def dates(self, names: Sequence[str]) -> SeasonStack:
        """The stack with these dates alone."""
        for name in names:
            if name not in self.names:
                raise UserError(f"the map has no date {name!r}; it has {', '.join(self.names)}")
        chosen = [self.names.index(name) for name in names]
        return replace(self, images=self.images[chosen], known=self.known[chosen], names=tuple(names))

    def columns(self, first: int, end: int) -> SeasonStack:
        """The stack between two columns."""
        if not 0 <= first < end <= self.width:
            raise UserError(f"columns {first} to {end} do not lie in a map of {self.width}")
        images, known = self.images[..., first:end], self.known[..., first:end]
        return replace(self, images=images, known=known, west=self.west + first * self.pixel)

    def rows(self, first: int, end: int) -> SeasonStack:
        """The stack between two rows, counted from the north."""
        if not 0 <= first < end <= self.height:
            raise UserError(f"rows {first} to {end} do not lie in a map of {self.height}")
        images, known = self.images[..., first:end, :], self.known[:, first:end]
        return replace(self, images=images, known=known, north=self.north - first * self.pixel)


def save_stack(path: Path, stack: SeasonStack) -> None:
    """Write a stack as `.npz`, which machines without readers of maps can read."""
    values = {
        "images": stack.images,
        "known": np.packbits(stack.known),
        "names": np.array(stack.names),
        "corner": np.array([stack.west, stack.north, stack.pixel]),
        "crs": np.array(stack.crs),
    }
    write_arrays(path, values)


def load_stack(path: Path) -> SeasonStack:
    """Read a stack that `save_stack` wrote."""
    if not path.is_file():
        raise MissingDataError(f"no season stack at {path}")
    arrays = read_arrays(path, _FORMS, "season stack")
    images, known, corner = arrays["images"], arrays["known"], arrays["corner"]
    dates, _, height, width = images.shape
    count = dates * height * width
    if known.dtype != np.uint8 or len(known) != math.ceil(count / 8) or len(corner) != 3:
        raise UserError(f"{path} is no season stack, or damaged (its arrays do not fit each other)")
    mask = np.unpackbits(known, count=count).astype(bool).reshape(dates, height, width)
    names = tuple(arrays["names"].tolist())
    west, north, pixel = corner.tolist()
    try:
        return SeasonStack(images, mask, names, west, north, pixel, str(arrays["crs"]))
    except UserError as error:
        raise UserError(f"{path} is damaged: {error}") from error
