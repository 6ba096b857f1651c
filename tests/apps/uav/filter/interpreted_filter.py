"""The filter's CUDA passes in Triton's interpreter; `kernels/test_triton.py` runs this file on its own."""

from dataclasses import replace

import numpy as np
import pytest

from torchcaps.apps.uav.filter import FilterSettings, Odometry, PlainBackend, PointMassFilter
from torchcaps.apps.uav.filter.cuda import CudaBackend

from apps.uav.filter.flights import fly, made_map
from kernels.interpreter import repair_interpreter


@pytest.mark.parametrize(
    ("storage", "gate"), [("float32", 0.0), ("float16", 1e-9), ("int8", 0.0), ("product", 1e-9)]
)
def test_a_flight_ends_in_the_belief_of_the_plain_filter(storage, gate, monkeypatch):
    repair_interpreter(monkeypatch)
    grid, vectors, descriptors = made_map(storage, columns=19, rows=5, headings=6)
    plain, _ = fly(grid, vectors, descriptors, PlainBackend(), FilterSettings(gate=gate), updates=2)
    fused, _ = fly(grid, vectors, descriptors, CudaBackend("cpu"), FilterSettings(gate=gate), updates=2)
    assert fused == pytest.approx(plain, rel=1e-4, abs=1e-12)
    assert np.count_nonzero(fused) > 0


def test_without_an_image_the_belief_only_moves(monkeypatch):
    repair_interpreter(monkeypatch)
    grid, vectors, _ = made_map("float32", columns=19, rows=5, headings=6)
    plain, _ = fly(grid, vectors, None, PlainBackend(), FilterSettings(), updates=2)
    fused, _ = fly(grid, vectors, None, CudaBackend("cpu"), FilterSettings(), updates=2)
    assert fused == pytest.approx(plain, rel=1e-4, abs=1e-12)


def test_headings_that_an_update_leaves_out_hold_nothing_afterwards(monkeypatch):
    """They are not cleared on the device; turning back to them must not bring their old belief back."""
    repair_interpreter(monkeypatch)
    grid, _, _ = made_map("float32", columns=19, rows=5, headings=6)
    filters = [
        PointMassFilter(grid, backend, FilterSettings(gate=1e-9))
        for backend in (PlainBackend(), CudaBackend("cpu"))
    ]
    for heading in (0.1, 3.3, 0.1, 1.2):
        for each in filters:
            each.update(Odometry(5.0, 0.0, 0.0, distance=30.0), heading)
        plain, fused = (each.belief() for each in filters)
        assert fused == pytest.approx(plain, rel=1e-4, abs=1e-12)


def test_a_compass_that_contradicts_the_whole_belief_begins_anew(monkeypatch):
    repair_interpreter(monkeypatch)
    grid, _, _ = made_map("float32", columns=19, rows=5, headings=6)
    filter = PointMassFilter(grid, CudaBackend("cpu"), FilterSettings())
    filter.update(Odometry(0.0, 0.0, 0.0), heading=0.5)
    assert filter.update(Odometry(0.0, 0.0, 0.0), heading=3.6).restarted
    assert filter.belief() == pytest.approx(1 / grid.voxels)


def test_a_cell_without_known_ground_is_no_candidate(monkeypatch):
    repair_interpreter(monkeypatch)
    grid, vectors, descriptors = made_map("int8", columns=19, rows=5, headings=6)
    known = np.random.default_rng(1).random((grid.rows, grid.columns)) < 0.5
    masked = replace(descriptors, known=known)
    plain, _ = fly(grid, vectors, masked, PlainBackend(), FilterSettings(), updates=2)
    fused, _ = fly(grid, vectors, masked, CudaBackend("cpu"), FilterSettings(), updates=2)
    assert fused == pytest.approx(plain, rel=1e-4, abs=1e-12)
    assert not fused[:, ~known].any()
