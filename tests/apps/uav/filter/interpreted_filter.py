"""The filter's CUDA passes in Triton's interpreter; `kernels/test_triton.py` runs this file on its own."""

import numpy as np
import pytest

from torchcaps.apps.uav.filter import FilterSettings, PlainBackend
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
