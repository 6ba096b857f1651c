"""The map compiler: the descriptor of every voxel of a map, written to one file."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image

from torchcaps.core import UserError
from torchcaps.data import SeasonStack, sample_crops
from torchcaps.storage import write_png

from ..describe import Describer, describe_places
from ..filter import Codebook, Grid, Likelihood, Storage, learn_codebook, linear_likelihood
from .map_file import MapInfo, write_map

_BATCH = 512  # crops that are described at once
_SAMPLE = 4096  # voxels that scales and centres are learnt from
_QUERIES = 64  # of them, compared with all others
_PICTURE = 1400  # longest side in pixels


@dataclass(frozen=True)
class CompileSettings:
    """Size of the voxels, by default that of the thesis, and how their descriptors are stored.

    Attributes:
        cell: Side of a cell in metres.
        headings: Parts of the circle.
        storage: Form of the descriptors.
        code_bytes: Of a descriptor in the form `product`.
    """

    cell: float = 10.0
    headings: int = 60
    storage: Storage = "int8"
    code_bytes: int = 16


@dataclass(frozen=True)
class StorageLoss:
    """How a form of storage changes likelihoods: differences of their logarithms against float32."""

    mean: float
    largest: float


def grid_of(stack: SeasonStack, cell: float, headings: int) -> Grid:
    """The voxels over a whole map."""
    one = Grid(stack.west, stack.south, cell, 1, 1, headings)  # refuses cells without a size
    columns, rows = (math.floor(side * stack.pixel / cell + 1e-6) for side in (stack.width, stack.height))
    if min(columns, rows) < 1:
        raise UserError(
            f"the map shows {stack.width * stack.pixel:g} x {stack.height * stack.pixel:g} m, less than one "
            f"cell of {cell:g} m: take a larger map or a smaller --cell"
        )
    return replace(one, columns=columns, rows=rows)


def compile_map(
    stack: SeasonStack,
    describer: Describer,
    out: Path,
    settings: CompileSettings | None = None,
    *,
    likelihood: Likelihood | None = None,
    on_described: Callable[[int, int], None] = lambda done, planned: None,
) -> StorageLoss:
    """Describe every voxel of a map of one date and write the file; a call that was cut off goes on.

    Args:
        stack: The map.
        describer: Makes descriptors; the map must have its metres per pixel.
        out: The file; a small picture of the map is written beside it.
        settings: Of voxels and storage.
        likelihood: In which the loss of the storage is measured; the linear one by default.
        on_described: Is called before each batch with the voxels that are described, and all there are.
    """
    settings = settings or CompileSettings()
    if len(stack.names) != 1:
        raise UserError(f"a map is compiled from one date, not from {len(stack.names)}: choose one")
    if min(stack.width, stack.height) < describer.side:
        raise UserError(
            f"the map shows {stack.width * stack.pixel:g} x {stack.height * stack.pixel:g} m, less than one "
            f"crop of {describer.side * stack.pixel:g} m: take a larger map"
        )
    picture = out.with_suffix(".png")
    if picture == out:
        raise UserError(f"a picture of the map is written to {picture}: give the map the ending .tcmap")
    grid = grid_of(stack, settings.cell, settings.headings)
    known = known_cells(stack, grid, describer.side)
    sample = _sample(grid, stack, describer)
    book = learn_codebook(sample, settings.storage, settings.code_bytes)
    images = torch.from_numpy(stack.images).to(describer.device)

    def plane_of(heading: int) -> NDArray[np.float32]:
        before = heading * grid.rows * grid.columns
        return _plane(
            images, stack, grid, heading, describer, lambda done: on_described(before + done, grid.voxels)
        )

    info = MapInfo(grid, stack.crs, describer.side * stack.pixel, describer.name, stack.names)
    out.parent.mkdir(parents=True, exist_ok=True)
    made_of = hashlib.sha256(np.ascontiguousarray(stack.images).data).hexdigest()
    write_map(out, info, book, describer.size, plane_of, made_of=made_of, known=known)
    _write_picture(picture, stack, grid)
    return storage_loss(sample, book, likelihood or linear_likelihood())


def known_cells(stack: SeasonStack, grid: Grid, side: int) -> NDArray[np.bool_]:
    """Cells (row, column) around which a map of one date shows ground, in at least half of a crop.

    Pixels without data or entirely black are no ground. The part of a crop beside the map does not count.
    """
    shown = stack.ground[0]
    sums = np.pad(shown.cumsum(0, dtype=np.int64).cumsum(1), ((1, 0), (1, 0)))
    left, right = _reach((grid.x_centres - stack.west) / stack.pixel, side, stack.width)
    top, bottom = _reach((stack.north - grid.y_centres) / stack.pixel, side, stack.height)
    upper, lower = sums[top], sums[bottom]
    ground = lower[:, right] - lower[:, left] - upper[:, right] + upper[:, left]
    known = np.asarray(2 * ground >= np.outer(bottom - top, right - left))
    if not known.any():
        raise UserError(f"{stack.names[0]} shows no ground: its pixels are without data (nodata) or black")
    return known


def _reach(middles: NDArray[np.float64], side: int, end: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The first pixel of a crop along one axis, and the one behind its last, inside the map."""
    first, behind = (np.rint(middles + half).clip(0, end).astype(np.int64) for half in (-side / 2, side / 2))
    return first, behind


def _sample(grid: Grid, stack: SeasonStack, describer: Describer) -> NDArray[np.float32]:
    rng = np.random.default_rng(0)
    count = min(_SAMPLE, grid.voxels)
    heading, row, column = np.unravel_index(rng.choice(grid.voxels, count, replace=False), grid.shape)
    places = np.stack([grid.x_centres[column], grid.y_centres[row], grid.heading_centres[heading]], axis=1)
    return describe_places(describer, stack, places, np.zeros(count, np.int64))


def _plane(
    images: torch.Tensor,
    stack: SeasonStack,
    grid: Grid,
    heading: int,
    describer: Describer,
    on_described: Callable[[int], None],
) -> NDArray[np.float32]:
    """The descriptors of one heading as (row, column, component); each batch is announced."""
    x, y = np.meshgrid(grid.x_centres, grid.y_centres)
    centres = torch.from_numpy(stack.centres_of(x.ravel(), y.ravel())).to(describer.device)
    angle = float(grid.heading_centres[heading])
    found = []
    for start, part in zip(range(0, len(centres), _BATCH), torch.split(centres, _BATCH), strict=True):
        on_described(start)
        dates = torch.zeros(len(part), dtype=torch.int64, device=part.device)
        crops = sample_crops(images, dates, part, torch.full_like(part[:, 0], angle), describer.side)
        found.append(describer(crops).cpu())
    return torch.cat(found).numpy().reshape(grid.rows, grid.columns, describer.size)


def storage_loss(sample: NDArray[np.float32], book: Codebook, likelihood: Likelihood) -> StorageLoss:
    """The loss of a form of storage over all pairs of some descriptors with a sample of them."""
    stored = book.decode(book.encode(sample[None]))[0]
    queries = sample[:_QUERIES]
    exact, kept = (_log_weights(queries @ vectors.T, likelihood) for vectors in (sample, stored))
    difference = np.abs(exact - kept)
    return StorageLoss(float(difference.mean()), float(difference.max()))


def _log_weights(dots: NDArray[np.floating], likelihood: Likelihood) -> NDArray[np.float64]:
    distances = np.sqrt((2 - 2 * dots.astype(np.float64)).clip(0, 4))
    weights = np.interp(distances, np.linspace(0, 2, len(likelihood.weights)), likelihood.weights)
    return np.log(weights)


def _write_picture(path: Path, stack: SeasonStack, grid: Grid) -> None:
    """The map as far as the grid goes, small enough for a page."""
    width, height = (round(count * grid.cell / stack.pixel) for count in (grid.columns, grid.rows))
    picture = Image.fromarray(np.moveaxis(stack.images[0][:, -height:, :width], 0, -1))
    picture.thumbnail((_PICTURE, _PICTURE))
    write_png(path, picture)
