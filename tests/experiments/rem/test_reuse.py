import json
from dataclasses import replace

import pytest

from torchcaps.core import UserError
from torchcaps.experiments.plan import Experiment, Job, PlannedRun, setting_of, take_over
from torchcaps.experiments.rem.reuse import reused, varied
from torchcaps.experiments.rem.setting import TreeSetting
from torchcaps.experiments.runner import Visit
from torchcaps.experiments.runner.make import perform_run
from torchcaps.storage import write_json
from torchcaps.train import Machine, Silent

TABLE = Experiment(
    label="tab:source",
    chapter="none",
    title="source",
    data=(),
    gpu_minutes=0,
    settings=(
        TreeSetting(
            name="network",
            recipe="mnist/dr_capsnet_thesis",
            changes={"keep_epochs": [1]},
            budgets={"quick": {"epochs": 7, "loss.coupling_entropy": 0.5}},
            thesis={"test_accuracy": 99.0},
        ),
    ),
)


def test_a_setting_is_found_by_name_and_an_unknown_one_is_an_error():
    assert setting_of((TABLE,), "network") == (TABLE, TABLE.settings[0])
    with pytest.raises(UserError, match="none of tab:source has a setting 'other'"):
        setting_of((TABLE,), "other")


def test_further_changes_hold_in_every_budget():
    setting = varied((TABLE,), "network", "varied", {"loss.coupling_entropy": 0.1})
    for budget, epochs in (("quick", 7), ("full", 1000)):
        recipe = PlannedRun(experiment=TABLE, setting=setting, budget=budget, seed=42).recipe
        assert (recipe.loss.coupling_entropy, recipe.epochs, recipe.keep_epochs) == (0.1, epochs, ())
    assert setting.thesis == {}


def refuse(*anything):
    raise AssertionError("nothing is left to make")


OTHER = replace(TABLE, label="tab:other", settings=(replace(reused((TABLE,), "network"), name="same"),))
CPU = Machine(device="cpu")


def test_a_result_is_taken_over_without_its_weights(tmp_path):
    run = next(OTHER.planned("quick"))
    source = PlannedRun(experiment=TABLE, setting=TABLE.settings[0], budget="quick", seed=42)
    made = source.folder(tmp_path) / "result.json"
    made.parent.mkdir(parents=True)
    made.write_text(json.dumps({"metrics": {"entropy": 1.5}, "seconds": 3.0}))
    take_over((replace(TABLE, perform=refuse),), refuse)(Job(run, tmp_path, CPU, Silent()))
    taken = (run.folder(tmp_path) / "result.json").read_text()
    assert json.loads(taken) == json.loads(made.read_text())


def test_a_run_that_is_taken_over_keeps_the_concurrency_it_was_made_with(tmp_path):
    source = PlannedRun(experiment=TABLE, setting=TABLE.settings[0], budget="quick", seed=42)
    write_json(source.folder(tmp_path) / "result.json", {"metrics": {}, "concurrency": 6})
    taking = replace(OTHER, perform=take_over((TABLE,), refuse))
    (run,) = taking.planned("quick", 1)
    perform_run(run, tmp_path, CPU, Visit(), concurrency=1)
    assert json.loads((run.folder(tmp_path) / "result.json").read_text())["concurrency"] == 6


def test_a_missing_run_is_made_where_runs_of_its_table_lie(tmp_path):
    made = []

    def perform(job):
        made.append(job.folder)
        write_json(job.folder / "result.json", {"metrics": {}})

    run = next(OTHER.planned("quick"))
    take_over((replace(TABLE, perform=perform),), refuse)(Job(run, tmp_path, CPU, Silent()))
    assert made == [tmp_path / "tab-source" / "quick" / "network-42"]


def test_settings_of_its_own_are_made_as_ever(tmp_path):
    run = next(TABLE.planned("quick"))
    made = []
    take_over((TABLE,), lambda job: made.append(job.run))(Job(run, tmp_path, CPU, Silent()))
    assert made == [run]
