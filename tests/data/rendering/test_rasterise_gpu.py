"""The rasteriser on a GPU draws what it draws on a CPU."""

import pytest
import torch

from torchcaps.core.rotation import random_rotations
from torchcaps.data import load_dataset
from torchcaps.data.rendering import View, cube, rasterise, tetrahedron

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize(
    "mesh",
    [
        cube(),
        tetrahedron(),
        cube()._replace(is_convex=False),
        cube()._replace(is_convex=False, is_closed=False),
    ],
)
def test_a_gpu_draws_what_a_cpu_draws(mesh):
    rotations, view = random_rotations(64, torch.Generator().manual_seed(0)), View(height=96, width=80)
    ours, theirs = rasterise(mesh, rotations, view), rasterise(mesh, rotations.cuda(), view)
    for a, b in zip(ours, theirs, strict=True):
        assert (a != b.cpu()).float().mean() < 1e-3  # middles of pixels on an edge


def test_datasets_are_rendered_on_the_gpu():
    examples = load_dataset("synthetic_cube_tetrahedron", "test").to("cuda")
    assert examples.images.is_cuda
    assert examples.is_in_memory
