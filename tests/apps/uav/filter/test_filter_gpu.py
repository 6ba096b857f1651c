import numpy as np
import pytest
import torch

from torchcaps.apps.uav.filter import FilterSettings, PlainBackend

from apps.uav.filter.flights import fly, made_map

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("storage", ["float32", "float16", "int8", "product"])
@pytest.mark.parametrize("gate", [0.0, 1e-9])
def test_a_flight_ends_in_the_belief_of_the_exact_filter(storage, gate):
    from torchcaps.apps.uav.filter.cuda import CudaBackend

    grid, vectors, descriptors = made_map(storage, columns=333, rows=70, headings=60)
    exact, _ = fly(
        grid, vectors, descriptors, PlainBackend(torch.float64), FilterSettings(gate=0.0), updates=12
    )
    fused, found = fly(grid, vectors, descriptors, CudaBackend(), FilterSettings(gate=gate), updates=12)
    mask = exact > 1e-30
    assert abs(exact[mask] @ np.log(exact[mask] / np.maximum(fused[mask], 1e-300))) < 1e-5
    assert found.discarded <= 2e-9
