import json
import threading
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from torchcaps.core import UserError
from torchcaps.data import dataset_info, write_twin
from torchcaps.experiments import LABELS, list_experiments
from torchcaps.experiments.plan import (
    EXPERIMENTS,
    Experiment,
    Job,
    Outcome,
    PlannedRun,
    Setting,
    take_over,
)
from torchcaps.experiments.plan.job import train_recipe
from torchcaps.experiments.records import Details, load_rows, protocol_of, read_budget
from torchcaps.experiments.results import gather_runs
from torchcaps.experiments.runner import RunCounts, Visit, outdated_runs, run_missing
from torchcaps.storage import DiskError
from torchcaps.train import Machine, Silent, StoppedError
from torchcaps.train.recipe import Recipe, recipe_as_json

from sweep import first_of_each

CPU = Machine(device="cpu")
TINY = {
    "model": {"name": "dr_capsnet_tiny_test", "image_size": 28, "num_classes": 10, "decoder": "fc"},
    "data": {"name": "synthetic_mnist", "limit": 40, "validation": 0.2},
    "batch_size": 16,
    "epochs": 2,
}
FACTS = {"seconds": 1.0, "precision": "32", "parameters": 1}


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
            Setting(name="broken", recipe="mnist/dr_capsnet", changes={"data.name": "nothing"}),
            Setting(
                name="small, one", recipe="mnist/dr_capsnet", changes=TINY, thesis={"test_accuracy": 50.0}
            ),
            Setting(
                name="small, two",
                recipe="mnist/dr_capsnet",
                changes={**TINY, "optim.learning_rate": 1e-4},
            ),
        ),
    )


def test_one_seed_of_every_setting_comes_before_the_second_of_any(experiment):
    runs = [(run.setting.name, run.seed) for run in experiment.planned("full")]
    assert [seed for _, seed in runs] == [42] * 3 + [43] * 3
    assert len(set(runs)) == 6


def test_settings_are_chosen_by_name(experiment):
    assert [setting.name for setting in experiment.only("SMALL*").settings] == ["small, one", "small, two"]
    assert [setting.name for setting in experiment.only("small, two", "nothing*").settings] == ["small, two"]
    two = experiment.only("small, two")
    assert [run.folder(Path()) for run in two.planned("full")] == [
        run.folder(Path()) for run in experiment.planned("full") if run.setting.name == "small, two"
    ]
    with pytest.raises(UserError, match="matches 'large'; it has broken; small, one; small, two"):
        experiment.only("large")


def test_what_is_missing_is_run_once_and_failures_do_not_stop_the_others(experiment, tmp_path):
    counts = run_missing(experiment, tmp_path, CPU)
    assert counts == RunCounts(done=4, failed=2, left=0, planned=6)
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
    model = 'dr_capsnet_tiny_test(image_size=28, num_classes=10, decoder="fc")'
    assert rows[0]["protocols"] == [{"budget": "full", "epochs": 2, "images": 40, "model": model}]
    assert {run["concurrency"] for row in rows for run in row["runs"]} == {1}


def test_a_run_may_be_more_than_training(experiment, tmp_path):
    def double(job):
        job.leave_result(Outcome(metrics={"rounds": 2 * job.run.seed}, **FACTS))

    setting = replace(experiment.settings[1], thesis={"rounds": 80.0})
    changed = replace(
        experiment,
        settings=(setting,),
        perform=double,
        draw=lambda rows: b"%d rows" % len(rows),
        metrics=("rounds",),
    )
    assert run_missing(changed, tmp_path, CPU).done == 2
    gather_runs(changed, tmp_path, tmp_path, budget="full", command="c")
    (row,) = json.loads((tmp_path / "fig-some-thing.json").read_text())["rows"]
    assert (row["ours"], row["thesis"]) == (2 * 42.5, 80.0)
    assert (tmp_path / "fig-some-thing.png").read_bytes() == b"1 rows"
    gather_runs(replace(changed, draw=lambda rows: None), tmp_path, tmp_path, budget="full", command="c")
    assert (tmp_path / "fig-some-thing.png").read_bytes() == b"1 rows"  # it stays while there is no other


def concurrency_of(out):
    return {json.loads(path.read_text())["concurrency"] for path in out.rglob("result.json")}


def test_a_result_says_how_many_runs_shared_the_device(experiment, tmp_path):
    machines = []

    def perform(job):
        machines.append(job.machine)
        job.leave_result(Outcome(metrics={"rounds": 1}, **FACTS))

    pair = replace(experiment, settings=experiment.settings[1:], perform=perform)
    run_missing(pair, tmp_path / "shared", CPU, seeds=1, visit=Visit(at_once=4))
    assert concurrency_of(tmp_path / "shared") == {2}  # there are no more than two
    run_missing(pair, tmp_path / "alone", CPU, seeds=1)
    assert concurrency_of(tmp_path / "alone") == {1}
    # a tuned convolution frees memory, which must not happen beside another run
    assert [machine.tune_convolutions for machine in machines] == [False, False, True, True]


def test_a_result_says_by_which_protocol_its_data_are_made(experiment, tmp_path):
    def perform(job):
        job.leave_result(Outcome(metrics={"rounds": 1}, **FACTS))

    pairs = replace(experiment.settings[1], changes={"data.name": "multimnist:train=200"})
    planned = replace(experiment, settings=(pairs,), perform=perform)
    run_missing(planned, tmp_path, CPU, seeds=1)
    (path,) = tmp_path.rglob("result.json")
    assert json.loads(path.read_text())["data_protocol"] == dataset_info("multimnist").protocol == 2
    assert outdated_runs(planned.planned("full", 1), tmp_path) == []


def test_the_result_of_a_reused_run_is_taken_over_as_it_is(experiment, tmp_path):
    def perform(job):
        job.leave_result(Outcome(metrics={"rounds": 1}, **FACTS))

    source = replace(experiment, settings=experiment.settings[1:], perform=perform)
    run_missing(source, tmp_path, CPU, seeds=1, visit=Visit(at_once=2))
    taker = replace(
        experiment,
        label="fig:taker",
        settings=(replace(experiment.settings[1], name="taken", reuses="small, one"),),
        perform=take_over((source,), perform),
    )
    run_missing(taker, tmp_path, CPU, seeds=1)
    results = [next(one.planned("full")).folder(tmp_path) / "result.json" for one in (source, taker)]
    made, taken = (json.loads(path.read_text()) for path in results)
    assert taken == made
    assert taken["concurrency"] == 2


def test_the_result_of_a_run_that_is_made_to_be_reused_is_as_complete_as_any(experiment, tmp_path):
    def perform(job):
        job.leave_result(Outcome(metrics={"rounds": 1}, **FACTS))

    pairs = replace(experiment.settings[1], changes={"data.name": "multimnist:train=200"})
    source = replace(experiment, settings=(pairs,), perform=perform)
    taken = replace(pairs, name="taken", reuses=pairs.name)
    taker = replace(source, label="fig:taker", settings=(taken,), perform=take_over((source,), perform))
    run_missing(taker, tmp_path, CPU, seeds=1)
    for one in (source, taker):
        result = json.loads((next(one.planned("full")).folder(tmp_path) / "result.json").read_text())
        assert (result["concurrency"], result["data_protocol"]) == (1, 2)
        assert outdated_runs(one.planned("full", 1), tmp_path) == []


def test_a_metric_that_some_runs_lack_is_the_mean_of_the_others(experiment, tmp_path):
    def perform(job):
        late = {} if job.run.seed == 42 else {"entropy": 3.0}
        details = Details(series={"levels": np.array([1.0, 2.0])})
        outcome = Outcome(metrics={"rounds": job.run.seed, **late}, details=details, **FACTS)
        job.leave_result(outcome)

    chosen = replace(
        experiment, settings=experiment.settings[1:2], perform=perform, metrics=("rounds", "entropy")
    )
    run_missing(chosen, tmp_path, CPU)
    gather_runs(chosen, tmp_path, tmp_path, budget="full", command="c")
    rounds, entropy = load_rows(tmp_path, chosen.slug)
    assert (rounds.ours, rounds.seeds) == (42.5, 2)
    assert (entropy.ours, [run.facts.seed for run in entropy.runs]) == (3.0, [43])
    assert [bool(run.details) for row in (rounds, entropy) for run in row.runs] == [True, True, False]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"metrics": {"rounds": None}}, "its metric rounds is no number"),
        ({"recipe": {}}, "its recipe lacks data"),
        ({"metrics": None}, "damaged"),
    ],
)
def test_a_damaged_result_is_named(experiment, tmp_path, changes, words):
    def leave(job):
        job.leave_result(Outcome(metrics={"rounds": 1}, **FACTS))

    changed = replace(experiment, settings=experiment.settings[1:2], perform=leave, metrics=("rounds",))
    run_missing(changed, tmp_path, CPU)
    path = next(tmp_path.rglob("result.json"))
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    with pytest.raises(UserError, match=words) as caught:
        gather_runs(changed, tmp_path, tmp_path, budget="full", command="c")
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (
            torch.AcceleratorError("CUDA error: unspecified launch failure\nmore"),
            "device was lost (CUDA error: unspecified launch failure)",
        ),
        (DiskError("cannot write weights.safetensors: No space left on device"), "No space left on device"),
    ],
)
def test_a_lost_device_or_full_disk_is_no_failure_of_the_run_and_ends_the_visit(
    experiment, tmp_path, error, words
):
    def fail(job):
        raise error

    said = []
    counts = run_missing(replace(experiment, perform=fail), tmp_path, CPU, visit=Visit(on_run=said.append))
    assert counts == RunCounts(done=0, failed=0, left=6, planned=6)
    assert len(said) == 2  # begun, and stopped: the others were not begun
    assert words in said[1]


def test_a_run_without_its_data_is_left_for_later_and_the_others_go_on(experiment, tmp_path):
    absent = replace(experiment.settings[1], name="absent", changes={"data": {"name": "mnist"}})
    said = []
    counts = run_missing(
        replace(experiment, settings=(absent, experiment.settings[1])),
        tmp_path,
        replace(CPU, data_dir=tmp_path),
        seeds=1,
        visit=Visit(on_run=said.append),
    )
    assert counts == RunCounts(done=1, failed=0, left=1, planned=2)
    assert said[1].startswith("absent, seed 42 left out: ")


def test_settings_whose_names_begin_alike_are_not_mixed_up(experiment, tmp_path):
    settings = tuple(replace(experiment.settings[1], name=name) for name in ("pull", "pull 0.5"))
    chosen = replace(experiment, settings=settings)
    for number, run in enumerate(chosen.planned("full", 1)):
        outcome = Outcome(metrics={"test_accuracy": number}, **FACTS)
        Job(run, tmp_path, CPU, Silent()).leave_result(outcome)
    gather_runs(chosen, tmp_path, tmp_path, budget="full", command="c")
    rows = json.loads((tmp_path / "fig-some-thing.json").read_text())["rows"]
    assert [(row["setting"], row["ours"], row["seeds"]) for row in rows] == [
        ("pull", 0, 1),
        ("pull 0.5", 100, 1),
    ]


def test_a_budget_changes_the_recipe_and_a_setting_adds_to_it(experiment):
    setting = replace(experiment.settings[1], budgets={"quick": {"patience": 3}})
    changed = replace(experiment, settings=(setting,), budgets={"quick": {"epochs": 7, "patience": 9}})
    quick, full = (next(changed.planned(budget)).recipe for budget in ("quick", "full"))
    assert (quick.epochs, quick.patience) == (7, 3)
    assert (full.epochs, full.patience) == (2, 0)


def test_a_quick_run_is_a_full_one_where_nothing_makes_it_smaller(experiment, tmp_path):
    alike, other = experiment.settings[1:]
    settings = (alike, replace(other, budgets={"quick": {"epochs": 1}}))
    mixed = replace(experiment, settings=settings, perform=_found)
    assert [run.budget for run in mixed.planned("quick", 1)] == ["full", "quick"]
    assert [run.budget for run in mixed.planned("smoke", 1)] == ["smoke", "smoke"]
    run_missing(mixed, tmp_path, CPU, budget="quick")
    assert run_missing(mixed, tmp_path, CPU, visit=Visit(0.0)).done == 2  # of the first setting
    gather_runs(mixed, tmp_path, tmp_path, budget="quick", command="c")
    rows = load_rows(tmp_path, mixed.slug)
    assert [(row.setting, row.budget) for row in rows] == [("small, one", "full"), ("small, two", "quick")]


def _found(job):
    job.leave_result(Outcome(metrics={"test_accuracy": 0.5}, **FACTS))


def test_runs_that_others_look_at_are_full_where_nothing_makes_them_smaller(experiment, tmp_path):
    source = replace(experiment, settings=experiment.settings[1:2], perform=_found)
    setting = replace(source.settings[0], reuses="small, one", budgets={"quick": {"epochs": 1}})
    taker = replace(source, label="fig:taker", settings=(setting,), perform=take_over((source,), _found))
    assert run_missing(taker, tmp_path, CPU, budget="quick", seeds=1).done == 1
    assert [path.parent for path in tmp_path.glob("fig-some-thing/*/*/result.json")] == [
        next(source.planned("full")).folder(tmp_path)
    ]


def test_a_visit_ends_in_time_and_the_next_goes_on(experiment, tmp_path):
    assert run_missing(experiment, tmp_path, CPU, visit=Visit(0.0)).left == 6
    assert run_missing(experiment, tmp_path, CPU, seeds=1).done == 2


@pytest.mark.slow
def test_runs_side_by_side_are_those_made_one_after_the_other(experiment, tmp_path):
    counts = run_missing(experiment, tmp_path / "packed", CPU, seeds=1, visit=Visit(at_once=3))
    assert counts == run_missing(experiment, tmp_path / "single", CPU, seeds=1)
    for run in experiment.planned("full", 1):
        results = [run.folder(tmp_path / way) / "result.json" for way in ("packed", "single")]
        if results[0].is_file():
            packed, single = (json.loads(path.read_text()) for path in results)
            assert packed["metrics"] == single["metrics"]
            assert (packed["concurrency"], single["concurrency"]) == (3, 1)


def test_time_that_is_up_stops_all_runs_and_each_goes_on_later(experiment, tmp_path):
    visit = Visit(at_once=2)

    def perform(job):
        visit.stop()
        return train_recipe(job)

    stopping = replace(experiment, settings=experiment.settings[1:], perform=perform)
    assert run_missing(stopping, tmp_path, CPU, visit=visit, seeds=1).left == 2
    assert run_missing(replace(stopping, perform=train_recipe), tmp_path, CPU, seeds=1).done == 2


def test_an_interrupted_visit_stops_the_runs_under_way(experiment, tmp_path):
    started = threading.Barrier(2)

    def perform(job):
        started.wait(10)
        if job.run.setting.name == "small, one":
            raise KeyboardInterrupt
        while not job.watcher.wants_to_stop:
            time.sleep(0.01)
        raise StoppedError

    endless = replace(experiment, settings=experiment.settings[1:], perform=perform)
    with pytest.raises(KeyboardInterrupt):
        run_missing(endless, tmp_path, CPU, visit=Visit(at_once=2), seeds=1)


def test_an_unknown_budget_is_refused():
    with pytest.raises(UserError, match="budget must be one of smoke, quick, full"):
        read_budget("huge")


def smallest(experiment):
    """Settings that show each way of training once, with the smallest networks."""
    if experiment.label in ("fig:fashion", "fig:cifar10"):
        return experiment.settings[0:3:2]  # fixed and annealed
    if experiment.label == "fig:fix_vs_ann":
        return experiment.settings[:1]  # annealed
    return experiment.settings[1:2] or experiment.settings  # elsewhere the second, Efficient-CapsNet


def data_of(experiment):
    return {run.recipe.data.name for run in experiment.planned("smoke", seeds=1)}


def chapter_or_flights(label):
    """Flights take seconds even when they are small: all of them are slow tests."""
    return "flights" if "uav" in label or "lsl" in label else EXPERIMENTS[label].chapter


@pytest.mark.parametrize("label", first_of_each(EXPERIMENTS.names(), chapter_or_flights, slow=("flights",)))
def test_every_experiment_runs_at_its_smoke_budget(label, tmp_path, monkeypatch):
    monkeypatch.setattr(Recipe, "sketch", sketch_once)
    experiment = EXPERIMENTS[label]
    chosen = replace(experiment, settings=smallest(experiment))
    for name in set(experiment.data) - (data_of(experiment) - data_of(chosen)):
        if name == "eth80":
            pytest.skip("no stand-in for ETH-80 is drawn")
        write_twin(name, tmp_path, 150)
    counts = run_missing(chosen, tmp_path / "runs", replace(CPU, data_dir=tmp_path), budget="smoke", seeds=1)
    assert counts.done == counts.planned, [p.read_text() for p in tmp_path.rglob("error.json")]
    assert gather_runs(chosen, tmp_path / "runs", tmp_path, budget="smoke", command="c") > 0
    page = (tmp_path / f"{experiment.slug}.md").read_text()
    assert page.count("**open**") + page.count("confirmed**") >= len(experiment.claims)
    assert (tmp_path / f"{experiment.slug}.png").is_file() == (experiment.draw is not None)


_SKETCHES = {}


def sketch_once(recipe, sketch=Recipe.sketch):
    """The network without weights, built once for all settings that have it."""
    key = json.dumps(recipe.model, sort_keys=True)
    if key not in _SKETCHES:
        _SKETCHES[key] = sketch(recipe)
    return _SKETCHES[key]


@pytest.mark.parametrize("label", EXPERIMENTS.names())
def test_every_setting_of_every_budget_is_a_recipe(label, monkeypatch):
    monkeypatch.setattr(Recipe, "sketch", sketch_once)
    experiment = EXPERIMENTS[label]
    slugs = [setting.slug for setting in experiment.settings]
    assert len(set(slugs)) == len(slugs)
    for setting in experiment.settings:
        for budget in ("smoke", "quick", "full"):
            planned = PlannedRun(experiment=experiment, setting=setting, budget=budget, seed=42)
            assert protocol_of(recipe_as_json(planned.recipe), budget).epochs


def test_the_list_names_every_table_with_its_state(tmp_path):
    found = {progress.label: progress for progress in list_experiments(tmp_path, tmp_path, tmp_path)}
    assert set(LABELS) < set(found)
    for label in set(LABELS) - set(EXPERIMENTS.names()):
        assert found[label].state == "data missing"
    assert found["fig:fashion"].state == "data missing"
    assert found["fig:fashion"].planned == 6 * 3 * 3 * 5


def test_the_list_counts_a_run_once_and_as_full_where_quick_ones_are_no_smaller(tmp_path):
    found = []
    for label in ("smoke-mnist", "fig:fashion"):
        folder = next(EXPERIMENTS[label].planned("quick")).folder(tmp_path)
        folder.mkdir(parents=True)
        (folder / "result.json").write_text("{}")
        listed = {progress.label: progress for progress in list_experiments(tmp_path, tmp_path, tmp_path)}
        found.append((listed[label].full, listed[label].quick))
    assert found == [(1, 0), (0, 1)]


def test_a_smoke_run_of_every_family_tests_few_images():
    experiment = EXPERIMENTS["smoke-mnist"]
    for setting in experiment.settings:
        planned = PlannedRun(experiment=experiment, setting=setting, budget="smoke", seed=42)
        assert dataset_info(planned.recipe.data.name).num_test <= 1000
