"""Suite `filter`: updates of the localization filter on the thesis's map and on 100 square kilometres."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from itertools import product

import numpy as np
import torch

from torchcaps.apps.uav.filter import (
    Backend,
    Codebook,
    Descriptors,
    FilterSettings,
    Grid,
    Odometry,
    PlainBackend,
    PointMassFilter,
    Storage,
    fast_backend,
    linear_likelihood,
)

from .bench import Bench, Measurement
from .roofline import Cost
from .timing import Work

_SIZE = 16
_MAPS = {"6.2 km2": (162, 382), "100 km2": (1000, 1000)}  # columns and rows of 10 m, with 60 headings
_BYTES: dict[Storage, int] = {"int8": 1, "float16": 2}
_BELIEF_BYTES = 4 * 4  # a voxel of the belief is read and written in both passes
_PLAIN_LIMIT = 5_000_000  # voxels; plain PyTorch holds the whole map as floats


def filter_suite(
    bench: Bench, *, quick: bool = False, maps: Mapping[str, tuple[int, int]] = _MAPS
) -> Iterator[Measurement]:
    """An update with a heading and an image, over all headings and behind the gate.

    Args:
        bench: Where it will be measured.
        quick: Without the larger map.
        maps: Columns and rows of each map, by its name.
    """
    for name, (columns, rows) in list(maps.items())[: 1 if quick else None]:
        grid = Grid(0.0, 0.0, 10.0, columns, rows, 60)
        for storage, gate in product(_BYTES, (0.0, 1e-9)):
            if grid.voxels < _PLAIN_LIMIT and storage == "int8" and gate == 0:
                yield _update(bench, name, grid, storage, gate, fused=False)
            yield _update(bench, name, grid, storage, gate, fused=True)


def _update(
    bench: Bench, name: str, grid: Grid, storage: Storage, gate: float, *, fused: bool
) -> Measurement:
    return Measurement(
        case=f"filter, {name}, {storage}, {'gate' if gate else 'all headings'}",
        backend="fused" if fused else "torch",
        batch=1,
        build=partial(filter_work, grid, storage, gate, bench.device, fused=fused),
        cost=None if gate else partial(_cost, grid, storage),
        counts_setup=True,
        sizes=f"{grid.headings}x{grid.rows}x{grid.columns} voxels",
        facts={"pass": "forward"},
    )


def _cost(grid: Grid, storage: Storage) -> Cost:
    return Cost(2 * grid.voxels * _SIZE, grid.voxels * (_BELIEF_BYTES + _SIZE * _BYTES[storage]))


def _random_map(grid: Grid, storage: Storage, random: np.random.Generator) -> Descriptors:
    """Descriptors of about length one; drawn heading by heading, for memory is measured too."""
    scale = np.float32(1 / (74 * np.sqrt(_SIZE)))
    values = np.empty((grid.headings, grid.rows, _SIZE, grid.columns), storage)
    for plane in values:
        drawn = random.integers(-127, 128, plane.shape, np.int8)
        plane[:] = drawn if storage == "int8" else drawn * scale
    scales = np.full(_SIZE, scale) if storage == "int8" else None
    return Descriptors(values, Codebook(storage, scales))


def filter_work(grid: Grid, storage: Storage, gate: float, device: torch.device, *, fused: bool) -> Work:
    """Updates of a flight in circles, over a map of random descriptors."""
    random = np.random.default_rng(0)
    stored = _random_map(grid, storage, random)
    backend: Backend = fast_backend(device) if fused else PlainBackend(device=device)
    filter = PointMassFilter(grid, backend, FilterSettings(gate=gate), stored, linear_likelihood())
    query, count = random.normal(size=_SIZE), 0

    def work() -> None:
        nonlocal count
        count += 1
        filter.update(Odometry(40.0, 2.0, 0.1, distance=50.0), heading=0.1 * count, descriptor=query)

    return work
