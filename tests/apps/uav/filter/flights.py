"""Small maps and flights over them, for every backend of the filter."""

import numpy as np

from torchcaps.apps.uav.filter import (
    Descriptors,
    Grid,
    Odometry,
    PointMassFilter,
    learn_codebook,
    linear_likelihood,
)


def made_map(storage="float32", size=16, **sides):
    """A grid, its vectors (heading, row, column, component) and the same as stored descriptors."""
    grid = Grid(west=0.0, south=0.0, cell=10.0, **sides)
    vectors = np.random.default_rng(0).normal(size=(*grid.shape, size)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=-1, keepdims=True)
    sample = vectors.reshape(-1, size)[:20_000]  # more would take minutes, as it would of a real map
    book = learn_codebook(sample, storage, bytes_each=8)
    return grid, vectors, Descriptors(np.stack([book.encode(plane) for plane in vectors]), book)


def fly(grid, vectors, descriptors, backend, settings, updates):
    """The belief and the last estimate after a curved flight that sees the map's own descriptors."""
    likelihood = None if descriptors is None else linear_likelihood()
    filter = PointMassFilter(grid, backend, settings, descriptors, likelihood)
    for k in range(updates):
        seen = None if descriptors is None else vectors[(2 + k) % grid.headings, 2 + k, 4 + k]
        found = filter.update(Odometry(20.0, 1.0, 0.2), heading=0.5 + 0.2 * k, descriptor=seen)
    return filter.belief(), found
