import json
from dataclasses import replace

import pytest

from torchcaps.core import UserError
from torchcaps.data import write_twin
from torchcaps.experiments.catalogue import NOT_BUILT, list_experiments
from torchcaps.experiments.plan import EXPERIMENTS, Experiment, Setting
from torchcaps.experiments.runner import count_runs, gather_runs, merge_runs, run_missing
from torchcaps.train import Machine

CPU = Machine(device="cpu")
TINY = (
    "model={name: dr_capsnet_tiny_test, image_size: 28, num_classes: 10, decoder: fc}",
    "data={name: synthetic_mnist, limit: 40, validation: 0.2}",
    "batch_size=8",
    "epochs=2",
)


@pytest.fixture
def experiment():
    return Experiment(
        label="fig:some thing",
        chapter="none",
        title="small",
        data=("synthetic_mnist",),
        gpu_minutes=1,
        seeds=2,
        settings=(
            Setting(name="broken", recipe="mnist/dr_capsnet", changes=("data.name=nothing",)),
            Setting(name="small, one", recipe="mnist/dr_capsnet", changes=TINY, thesis=50.0),
            Setting(
                name="small, two", recipe="mnist/dr_capsnet", changes=(*TINY, "optim.learning_rate=1e-4")
            ),
        ),
    )


def test_one_seed_of_every_setting_comes_before_the_second_of_any(experiment):
    runs = [(setting.name, seed) for setting, seed in experiment.planned()]
    assert [seed for _, seed in runs] == [42] * 3 + [43] * 3
    assert len(set(runs)) == 6


def test_what_is_missing_is_run_once_and_failures_do_not_stop_the_others(experiment, tmp_path):
    counts = run_missing(experiment, tmp_path, CPU)
    assert counts == {"done": 4, "failed": 2, "left": 0, "planned": 6}
    errors = list(tmp_path.rglob("error.json"))
    assert "unknown dataset 'nothing'" in json.loads(errors[0].read_text())["error"]
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("result.json")}
    run_missing(experiment, tmp_path, CPU)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("result.json")} == before
    assert gather_runs(experiment, tmp_path, tmp_path, budget="full", command="c") == 2
    rows = json.loads((tmp_path / "fig-some-thing.json").read_text())["rows"]
    assert [(row["setting"], row["seeds"], row["thesis"]) for row in rows] == [
        ("small, one", 2, 50.0),
        ("small, two", 2, None),
    ]
    assert rows[0]["protocol"].startswith("full budget, 2 epochs, 40 images")


def test_a_visit_ends_in_time_and_the_next_goes_on(experiment, tmp_path):
    assert run_missing(experiment, tmp_path, CPU, minutes=0.0)["left"] == 6
    assert run_missing(experiment, tmp_path, CPU, seeds=1)["done"] == 2


def test_runs_of_another_machine_are_merged_and_duplicates_recognised(experiment, tmp_path):
    here, there = tmp_path / "here", tmp_path / "there"
    run_missing(experiment, here, CPU, seeds=1)
    run_missing(experiment, there, CPU, seeds=2)
    assert merge_runs(experiment, there, here) == 2
    assert merge_runs(experiment, there, here) == 0
    assert count_runs(experiment, here, budget="full")["done"] == 4


def test_an_unknown_budget_is_refused(experiment, tmp_path):
    with pytest.raises(UserError, match="budget must be one of smoke, quick, full"):
        run_missing(experiment, tmp_path, CPU, budget="huge")


@pytest.mark.parametrize("label", EXPERIMENTS.names())
def test_every_experiment_runs_at_its_smoke_budget(label, tmp_path):
    experiment = EXPERIMENTS[label]
    for name in experiment.data:
        write_twin(name, tmp_path, 300)
    # the smallest networks: in the grids fixed and annealed, elsewhere the second, Efficient-CapsNet
    settings = experiment.settings[0:3:2] if label.startswith("fig") else experiment.settings[1:2]
    chosen = replace(experiment, settings=settings)
    counts = run_missing(chosen, tmp_path / "runs", replace(CPU, data_dir=tmp_path), budget="smoke", seeds=1)
    assert counts["done"] == counts["planned"], [p.read_text() for p in tmp_path.rglob("error.json")]


@pytest.mark.parametrize("label", EXPERIMENTS.names())
def test_every_setting_of_every_budget_is_a_recipe(label):
    experiment = EXPERIMENTS[label]
    slugs = [setting.slug for setting in experiment.settings]
    assert len(set(slugs)) == len(slugs)
    for setting in experiment.settings:
        for budget in ("smoke", "quick", "full"):
            assert "epochs" in experiment.protocol(setting, budget)


def test_the_list_names_every_table_with_its_state(tmp_path):
    rows = {row["label"]: row for row in list_experiments(tmp_path, tmp_path, tmp_path)}
    assert set(NOT_BUILT) < set(rows)
    assert rows["tab:lung-results"]["state"] == "not built"
    assert rows["fig:fashion"]["state"] == "data missing"
    assert rows["fig:fashion"]["planned"] == 6 * 3 * 3 * 5
