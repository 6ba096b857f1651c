import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from torchcaps.experiments.rem import setting
from torchcaps.experiments.rem.tables import MNIST_TABLE, OTHERS_TABLE, decided_children
from torchcaps.losses import MarginLoss
from torchcaps.models import create_model
from torchcaps.parse import Keys
from torchcaps.prune import Lobster
from torchcaps.train import LossSettings, Optim

REM = Lobster(strength=1e-4, decay=0.99, patience=-1, tolerance=0.0, search_images=0)


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 5), st.integers(1, 6), st.integers(0, 100))
def test_decided_children_are_those_off_an_equal_share(images, children, seed):
    indices = np.random.default_rng(seed).integers(0, 4, (images, children)).astype(np.uint8)
    keys = Keys(indices, np.zeros(images, dtype=np.int64), 11, 10)
    slow = sum(index / 10 != 0.1 for row in indices.tolist() for index in row) / images
    assert decided_children(keys) == pytest.approx(slow)


def test_an_equal_share_depends_on_the_number_of_classes():
    keys = Keys(np.array([[2, 2, 1]], dtype=np.uint8), np.zeros(1, dtype=np.int64), 11, 5)
    assert decided_children(keys) == 1


@pytest.mark.parametrize("table", [MNIST_TABLE, OTHERS_TABLE], ids=lambda table: table.label)
def test_full_runs_follow_the_protocol_of_the_thesis(table):
    runs = list(table.planned("full"))
    assert {run.seed for run in runs} == {42, 43, 44, 45, 46}
    for run in runs[: len(table.settings)]:
        recipe, is_pruned = run.recipe, run.setting.variant == setting.REM
        assert recipe.optim == Optim(learning_rate=1e-3, decay=0.99)
        assert (recipe.batch_size, recipe.patience) == (128, 200)
        is_photograph = recipe.data.name == "imagenette"
        assert recipe.data.validation == (0.1 if is_photograph else 0.05)
        assert recipe.loss == LossSettings(task_loss=MarginLoss(present=0.9, absent=0.1, absent_weight=0.5))
        assert recipe.pruning == (REM if is_pruned else None)
        expected = (11, 6) if "gamma" in run.setting.name else 21 if is_photograph else 11
        assert run.setting.levels == expected


def test_the_network_for_svhn_has_its_published_size():
    (run,) = (
        run for run in OTHERS_TABLE.planned("full", seeds=1) if run.setting.name == "SVHN, DR-CapsNet+Q"
    )
    options = dict(run.recipe.model)
    with torch.device("meta"):
        model = create_model(options.pop("name"), **options)
    assert sum(parameter.numel() for parameter in model.parameters()) == 1_004_976
