import json
from types import SimpleNamespace

import pytest
import torch
from experiments.made_rows import a_row

from torchcaps.experiments import EXPERIMENTS
from torchcaps.experiments.plan import Job, Outcome
from torchcaps.experiments.rem.beyond import groups
from torchcaps.experiments.rem.beyond.groups import LABEL, groups_shrink, prune_and_shrink, weights_stay
from torchcaps.inspection import count_parameters
from torchcaps.models import create_model
from torchcaps.prune import shrink
from torchcaps.train import Machine, Silent

METRICS = ("test_accuracy", "sparsity", "parameters_share", "operations_share")


def of_network(network, folder):
    """A run as far as its network and device go."""
    return SimpleNamespace(folder=folder, model=network, device=torch.device("cpu"))


def rows_of(table, **changes):
    changes = {"seeds": 3, **changes}
    rows = [
        a_row(setting, metric, value, network="net", variant=setting.partition(",")[0], **changes)
        for setting, values in table.items()
        for metric, value in zip(METRICS, values, strict=True)
    ]
    return lambda label: rows if label == LABEL else []


WHOLE = {"as trained": (98.0, 0.0, 100.0, 100.0)}


@pytest.mark.parametrize(
    ("table", "verdict", "because"),
    [
        ({}, "open", "not been trained"),
        ({"capsules, tolerance 1": (98.0, 50.0, 40.0, 40.0)}, "open", "without pruning"),
        (
            WHOLE | {"capsules, tolerance 1": (97.6, 50.0, 40.0, 40.0)},
            "confirmed",
            "40.0 % of the operations",
        ),
        (WHOLE | {"capsule types, tolerance 1": (97.4, 50.0, 40.0, 40.0)}, "not confirmed", "at 97.40 %"),
        (WHOLE | {"capsules, tolerance 1": (97.6, 50.0, 60.0, 60.0)}, "not confirmed", "60.0 %"),
        (
            WHOLE
            | {
                "capsules, tolerance 1": (97.6, 5.0, 49.0, 49.0),
                "capsules, tolerance 2": (90.0, 9.0, 9.0, 9.0),
            },
            "confirmed",
            "(capsules, tolerance 1)",
        ),
    ],
)
def test_groups_shrink(table, verdict, because, monkeypatch):
    monkeypatch.setattr(groups, "_settings", tuple)  # no other has to run
    found = groups_shrink(rows_of(table))
    assert found.verdict == verdict
    assert because in found.because
    assert groups_shrink(rows_of(table, seeds=1)).verdict == "open"
    assert groups_shrink(rows_of(table, spread=50.0)).verdict == "open"


def test_groups_are_not_given_up_before_all_have_run_and_are_decided():
    planned = [s.name for s in EXPERIMENTS[LABEL].settings if s.name.startswith("capsule")]
    table = WHOLE | dict.fromkeys(planned, (98.0, 50.0, 60.0, 60.0))
    assert groups_shrink(rows_of(table)).verdict == "not confirmed"
    table.pop(planned[0])
    assert groups_shrink(rows_of(table)).verdict == "open"


@pytest.mark.parametrize(
    ("values", "verdict"),
    [
        ((97.0, 49.0, 95.0, 95.0), "open"),
        ((97.0, 51.0, 95.0, 95.0), "confirmed"),
        ((97.0, 51.0, 89.0, 95.0), "not confirmed"),
    ],
)
def test_weights_stay(values, verdict):
    planned = [s.name for s in EXPERIMENTS[LABEL].settings if s.variant == "single weights"]
    table = WHOLE | dict.fromkeys(planned, values)
    assert weights_stay(rows_of(table)).verdict == verdict
    for changes in ({"seeds": 1}, {"spread": 20.0}):
        assert weights_stay(rows_of(table, **changes)).verdict == "open"
    assert weights_stay(rows_of(table | {planned[0]: (97.0, 60.0, 80.0, 80.0)})).verdict == "not confirmed"
    hardly_pruned = (97.0, 20.0, 99.0, 99.0)
    assert weights_stay(rows_of(table | {planned[0]: hardly_pruned})).verdict == verdict
    table.pop(planned[0])
    expected = "not confirmed" if verdict == "not confirmed" else "open"
    assert weights_stay(rows_of(table)).verdict == expected  # one of them has not run


def test_a_run_says_what_shrinking_leaves(tmp_path, monkeypatch):
    network = create_model("dr_capsnet_tiny_test")
    with torch.no_grad():
        network.classes.weight[:4] = 0  # of 8 children
    trained = Outcome(metrics={}, parameters=0, seconds=0.0, precision="32")
    monkeypatch.setattr(groups, "train_and_count", lambda *_: (of_network(network, tmp_path), trained))
    experiment = EXPERIMENTS[LABEL]
    run = next(iter(experiment.planned("smoke", seeds=1)))
    job = Job(run, tmp_path, Machine(device="cpu"), Silent())
    prune_and_shrink(job)
    metrics = json.loads((job.folder / "result.json").read_text())["metrics"]
    whole, left = (count_parameters(each) for each in (network, shrink(network)))
    assert left < whole
    assert metrics["parameters_shrunk"] == left
    assert metrics["parameters_share"] == pytest.approx(left / whole)
    assert 0 < metrics["operations_share"] < 1
