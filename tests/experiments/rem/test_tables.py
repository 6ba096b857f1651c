import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from torchcaps.experiments.rem import setting
from torchcaps.experiments.rem.decoder import DECODER_TABLE
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
        name = run.setting.name
        expected = (11, 6) if "gamma" in name else (0, 11) if "thesis port" in name else 11
        assert run.setting.levels == (21 if is_photograph else expected)


def network_of(table, name):
    (run,) = (run for run in table.planned("full", seeds=1) if run.setting.name == name)
    options = dict(run.recipe.model)
    with torch.device("meta"):
        return create_model(options.pop("name"), **options)


def test_the_network_for_svhn_has_its_published_size():
    model = network_of(OTHERS_TABLE, "SVHN, DR-CapsNet+Q")
    assert sum(parameter.numel() for parameter in model.parameters()) == 1_004_976


@pytest.mark.parametrize(
    ("name", "children"),
    [
        ("CIFAR-10, Efficient-CapsNet, 16 children", 16),
        ("SVHN, Efficient-CapsNet, 16 children", 16),
        ("CIFAR-10, Efficient-CapsNet", 144),
        ("CIFAR-10, DR-CapsNet", 1_024),
        ("CIFAR-10, DR-CapsNet at 32 px", 12_544),
    ],
)
def test_networks_have_as_many_children_as_their_rows_say(name, children):
    for way in ("+Q", "+REM"):
        assert network_of(OTHERS_TABLE, name + way).classes.in_caps == children


@pytest.mark.parametrize("table", [MNIST_TABLE, OTHERS_TABLE], ids=lambda table: table.label)
def test_figures_of_the_thesis_stand_beside_its_own_networks_alone(table):
    for run in table.planned("full", seeds=1):
        name, model = run.setting.name, run.recipe.model
        is_port = "gamma" in name or "DeepCaps" in name
        is_thesis = model["name"].endswith("_thesis") and "init_std" not in model
        is_its_own = is_thesis if is_port else not run.setting.note
        assert bool(run.setting.thesis) == is_its_own, name
        assert bool(run.setting.note) != is_its_own, name


@pytest.mark.parametrize(("dataset", "ratio"), [("MNIST", 10.5), ("Fashion-MNIST", 9.7), ("CIFAR-10", 24.8)])
def test_decoders_weigh_errors_of_normalised_images_as_the_thesis_does(dataset, ratio):
    heavy, light = (
        next(run for run in DECODER_TABLE.planned("quick", seeds=1) if run.setting.name == name).recipe
        for name in (f"{dataset}, DR-CapsNet, thesis weight+REM", f"{dataset}, DR-CapsNet+REM")
    )
    assert light.loss.reconstruction == 0.0005
    assert heavy.loss.reconstruction / light.loss.reconstruction == pytest.approx(ratio, abs=0.05)


def test_printed_parameters_follow_from_the_printed_sparsity():
    figures = [each.thesis for each in MNIST_TABLE.settings if each.thesis]
    for plain, rem in zip(figures[::2], figures[1::2], strict=True):
        left = plain["parameters_left"] * (1 - rem["sparsity"] / 100)
        assert rem["parameters_left"] == pytest.approx(left, rel=0.1)  # the thesis cuts digits off


def test_networks_have_the_number_of_parameters_that_the_thesis_prints():
    for row in MNIST_TABLE.settings:
        if row.thesis and row.variant == setting.PLAIN:
            size = sum(each.numel() for each in network_of(MNIST_TABLE, row.name).parameters())
            assert size == pytest.approx(row.thesis["parameters_left"], rel=0.01)
