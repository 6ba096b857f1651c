"""The plans of the robustness experiments: equal sizes, the right datasets, runs that leave metrics."""

import json
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from torchcaps.core.metric import metric_of
from torchcaps.experiments import EXPERIMENTS
from torchcaps.experiments.plan import Job, Outcome, join_changes
from torchcaps.experiments.robustness import affnist
from torchcaps.experiments.robustness.networks import CONV, SHARED, VIT, small_networks, without_capsules
from torchcaps.inspection import count_parameters
from torchcaps.models import build_model
from torchcaps.prune import count_sparsity
from torchcaps.storage import DiskError
from torchcaps.suites.viewpoint import views_of
from torchcaps.train import Machine, Run, Silent

from small_runs import small_recipe

LABELS = [
    "tab:results-affnist",
    "tab:novelviewpoints",
    "robust:viewpoints-eth80",
    "robust:multimnist",
    "robust:partwhole-clutter",
    "robust:partwhole-images",
    "robust:partwhole-scenes",
    "robust:partwhole-search",
]


@pytest.mark.parametrize(
    ("size", "classes", "channels"),
    [(32, 8, 1), (36, 10, 1), (40, 10, 1), (48, 6, 1), (32, 8, 3), (32, 5, 2)],
)
def test_compared_networks_have_equal_sizes(size, classes, channels):
    with torch.device("meta"):
        sizes = {
            name: count_parameters(build_model(network.model))
            for name, network in small_networks(size, classes, channels).items()
        }
    capsules = sizes["DR-CapsNet"]
    assert sizes.pop(SHARED) < capsules
    assert all(abs(count / capsules - 1) < 0.05 for count in sizes.values()), sizes


@pytest.mark.parametrize("parameters", [291_392, 870_000, 8_116_480, 11_228_064])
def test_networks_without_capsules_have_the_size_that_is_asked_for(parameters):
    with torch.device("meta"):
        found = without_capsules(32, 8, 3, parameters)
        sizes = {name: count_parameters(build_model(network.model)) for name, network in found.items()}
    assert all(abs(count / parameters - 1) < 0.05 for count in sizes.values()), sizes


@pytest.mark.parametrize("label", LABELS)
def test_every_metric_is_known(label):
    assert all(metric_of(name).title for name in EXPERIMENTS[label].metrics)


@pytest.mark.parametrize("label", LABELS)
def test_every_table_has_a_convolutional_network_and_a_transformer(label):
    for name in (CONV, VIT):
        assert any(setting.name.startswith(name) for setting in EXPERIMENTS[label].settings)


def test_familiar_and_novel_views_are_those_of_the_run():
    run = next(iter(EXPERIMENTS["robust:viewpoints-eth80"].planned("quick", 1)))
    assert views_of(run.recipe.data.name) == {
        "familiar": "eth80:axis=elevation,views=familiar",
        "novel": "eth80:axis=elevation,views=novel",
    }


def test_a_run_on_partwhole_leaves_what_was_measured(tmp_path):
    experiment = EXPERIMENTS["robust:partwhole-scenes"]
    run = next(iter(experiment.planned("smoke", 1)))
    tiny = {
        "model.stem_channels": 4,
        "model.primary_types": 2,
        "data.name": "partwhole:branches=3x3,classes=6,train=40,test=20",
    }
    changes = join_changes(run.setting.changes, tiny)
    setting = type(run.setting)(name="tiny", recipe=run.setting.recipe, changes=changes)
    small = type(run)(experiment=experiment, setting=setting, budget="smoke", seed=1)
    job = Job(small, tmp_path, Machine(device="cpu"), Silent())
    experiment.perform(job)
    found = json.loads((job.folder / "result.json").read_text())["metrics"]
    assert {"test_accuracy", "accuracy_with_even", "tree_precision", "saliency_on_object"} <= set(found)


def test_rows_of_smallnorb_have_the_figures_of_both_tables_of_the_thesis():
    settings = EXPERIMENTS["tab:novelviewpoints"].settings
    printed = {setting.name: setting.thesis for setting in settings if setting.thesis}
    assert len(printed) == 16
    for name, figures in printed.items():
        assert ("sparsity" in figures) == name.endswith("+REM")
        for views in ("familiar", "novel"):  # quantization costs a point or two at most
            plain, quantized = figures[f"{views}_accuracy"], figures[f"{views}_quantized_accuracy"]
            assert abs(plain - quantized) < 1.3, name
            assert figures[f"{views}_entropy"] < 8


def test_an_under_trained_network_has_its_own_entropy_and_sparsity(tmp_path, monkeypatch):
    recipe = small_recipe(pruning={"strength": 1e-4})
    model = build_model(recipe.model)
    with torch.no_grad():
        model.stem.weight.zero_()
    run = Run(tmp_path, recipe, model, epoch=2)
    (tmp_path / "epoch-2.safetensors").touch()
    rows = [{"epoch": number, "val_accuracy": 0.992 + number / 1000} for number in range(3)]
    (tmp_path / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    monkeypatch.setattr(affnist, "load_run", lambda *_, weights: run)
    monkeypatch.setattr(affnist, "look_at", lambda *_: {"accuracy": 0.8, "entropy": 8.5})
    monkeypatch.setattr(affnist, "plain_accuracy", lambda *_: 0.993)
    found = affnist._undertrained(run, None)
    assert found["undertrained_affnist_style_entropy"] == 8.5
    assert found["undertrained_sparsity"] == count_sparsity(model)["sparsity"] > 0
    unpruned = replace(run, recipe=replace(recipe, pruning=None))
    assert "undertrained_sparsity" not in affnist._undertrained(unpruned, None)


def test_epochs_that_were_kept_stay_until_there_is_a_result(tmp_path, monkeypatch):
    """A run whose result could not be written is looked at again, its under-trained network too."""
    network, outcome = SimpleNamespace(folder=tmp_path), Outcome.of_training(TRAINED)
    kept = tmp_path / "epoch-2.safetensors"
    kept.touch()
    monkeypatch.setattr(Job, "train_network", lambda job: (network, outcome))
    monkeypatch.setattr(affnist, "look_at", lambda *_: {"accuracy": 0.8})
    monkeypatch.setattr(affnist, "_undertrained", lambda *_: {"undertrained_accuracy": 0.7})
    run = next(EXPERIMENTS["tab:results-affnist"].planned("smoke"))
    job = Job(run, tmp_path / "out", Machine(device="cpu"), Silent())
    with monkeypatch.context() as patched:
        patched.setattr(Job, "leave_result", full_disk)
        with pytest.raises(DiskError):
            affnist.train_and_test(job)
    assert kept.exists()
    affnist.train_and_test(job)
    assert not kept.exists()
    found = json.loads((job.folder / "result.json").read_text())["metrics"]
    assert found["undertrained_accuracy"] == 0.7


TRAINED = {"metrics": {}, "parameters": 1, "seconds": 1.0, "precision": "32"}


def full_disk(job, outcome):
    raise DiskError("no space left on device")
