from pathlib import Path

import pytest
import torch

from torchcaps.models import create_model
from torchcaps.train import Run, load_run, shrink_run
from torchcaps.train.recipe import build


@torch.no_grad()
def annealed_run(name, iterations, **options):
    """A run whose annealing ended at other iterations than the model's own."""
    model = create_model(name, decoder="none", **options).eval()
    model.classes.routing.iterations = iterations
    model.classes.weight[::3] = 0.0
    values = {
        "model": {"name": name, "decoder": "none", **options},
        "data": {"name": "synthetic_mnist"},
        "epochs": 1,
        "annealing": {"r0": 1, "r_max": 9},
    }
    return Run(Path("nowhere"), build(values), model, 4)


@torch.no_grad()
@pytest.mark.parametrize("name", ["dr_capsnet_tiny_test", "deepcaps_tiny_test"])
def test_an_annealed_run_is_shrunk_with_its_iterations(name, tmp_path):
    source = annealed_run(name, iterations=7)
    shrink_run(source, tmp_path / "small")
    run = load_run(tmp_path / "small")
    smaller = run.model
    assert run.epoch == source.epoch == 4
    assert smaller.classes.routing.iterations == 7
    assert smaller.config.voters > 0
    images = torch.randn(2, *source.model.image_shape)
    torch.testing.assert_close(
        smaller(images).activations, source.model(images).activations, atol=1e-6, rtol=0
    )
