import json
from dataclasses import replace

import pytest

from torchcaps.core import UserError
from torchcaps.experiments import EXPERIMENTS
from torchcaps.experiments.results.gather import rows_of_runs
from torchcaps.experiments.runner import merge_runs, outdated_runs, pack_runs, set_aside
from torchcaps.experiments.runner.make import missing_runs
from torchcaps.train.recipe import recipe_as_json

from command import torchcaps

CURVES = EXPERIMENTS["fig:fix_vs_ann"]
SMOKE = {"budget": "smoke", "seeds": 1}


def write_result(run, out, *, metrics=None, data_protocol=1, **changes):
    recipe = {**recipe_as_json(run.recipe), **changes}
    result = {
        "recipe": {key: value for key, value in recipe.items() if value is not None},
        "metrics": {"test_accuracy": 0.5, "test_loss": 0.1, "epochs": 1} if metrics is None else metrics,
        "seed": run.seed,
        "seconds": 1.0,
        "precision": "32",
        "parameters": 1,
        "device": "cpu",
        "commit": "c",
        "versions": {},
        **({} if data_protocol == 1 else {"data_protocol": data_protocol}),
    }
    run.folder(out).mkdir(parents=True)
    (run.folder(out) / "result.json").write_text(json.dumps(result))


@pytest.fixture
def runs(tmp_path):
    """One run as it is planned now, one with other epochs, one with a key that is gone."""
    first, second, third, *_ = CURVES.planned("smoke", 1)
    write_result(first, tmp_path)
    write_result(second, tmp_path, epochs=17)
    write_result(third, tmp_path, gone=1)
    return first, second, third


def test_a_result_of_another_recipe_is_outdated(runs, tmp_path):
    assert outdated_runs(CURVES.planned(**SMOKE), tmp_path) == list(runs[1:])


def test_a_result_that_is_none_is_named(runs, tmp_path):
    (runs[0].folder(tmp_path) / "result.json").write_text("[]")
    with pytest.raises(UserError, match=r"result\.json is damaged .*; delete it"):
        outdated_runs(CURVES.planned(**SMOKE), tmp_path)


def test_a_key_that_came_later_makes_no_result_outdated(runs, tmp_path):
    path = runs[0].folder(tmp_path) / "result.json"
    result = json.loads(path.read_text())
    del result["recipe"]["compile"]
    path.write_text(json.dumps(result))
    assert runs[0] not in outdated_runs(CURVES.planned(**SMOKE), tmp_path)


def test_a_result_of_older_data_is_outdated(tmp_path):
    run = next(iter(EXPERIMENTS["robust:multimnist"].planned("smoke", 1)))
    write_result(run, tmp_path)  # as before data had protocols
    assert outdated_runs([run], tmp_path) == [run]
    set_aside([run], tmp_path)
    write_result(run, tmp_path, data_protocol=2)
    assert outdated_runs([run], tmp_path) == []


@pytest.mark.parametrize("changes", [{}, {"epochs": 17}], ids=["older data", "older recipe"])
def test_a_row_never_has_runs_of_two_recipes_or_data_protocols(changes, tmp_path):
    experiment = EXPERIMENTS["robust:multimnist"]
    planned = [run for run in experiment.planned("smoke", 3) if run.setting == experiment.settings[0]]
    for run in planned:
        write_result(run, tmp_path, metrics={"test_pair_accuracy": 0.5}, **changes)
    (older,) = rows_of_runs(experiment, tmp_path, budget="smoke")
    assert (older.seeds, older.ours) == (3, 50.0)  # what there is, until there is a present run
    present = replace(planned[0], seed=99)
    write_result(present, tmp_path, metrics={"test_pair_accuracy": 0.9}, data_protocol=2)
    (row,) = rows_of_runs(experiment, tmp_path, budget="smoke")
    assert (row.seeds, row.ours) == (1, 90.0)


def test_what_is_set_aside_is_missing_and_kept(runs, tmp_path):
    before = len(missing_runs(CURVES.planned(**SMOKE), tmp_path))
    kept = (runs[1].folder(tmp_path) / "result.json").read_text()
    assert set_aside(CURVES.planned(**SMOKE), tmp_path) == 2
    assert len(missing_runs(CURVES.planned(**SMOKE), tmp_path)) == before + 2
    assert set_aside(CURVES.planned(**SMOKE), tmp_path) == 0
    assert kept in [path.read_text() for path in tmp_path.rglob("smoke-older/*/result.json")]
    write_result(runs[1], tmp_path, epochs=18)  # and once more: the later one is kept
    assert set_aside(CURVES.planned(**SMOKE), tmp_path) == 1
    assert kept not in [path.read_text() for path in tmp_path.rglob("smoke-older/*/result.json")]


def test_what_is_set_aside_does_not_travel(runs, tmp_path):
    set_aside(CURVES.planned(**SMOKE), tmp_path)
    assert pack_runs(tmp_path, tmp_path / "runs.tar.gz") == 1
    assert merge_runs(CURVES, tmp_path, tmp_path / "elsewhere") == 1


def test_the_command_tells_and_renews(runs, tmp_path):
    command = ["reproduce", CURVES.label, "--budget", "smoke", "--seeds", 1, "--minutes", 0]
    command += ["--out", tmp_path, "--results", tmp_path / "pages", "--device", "cpu"]
    told = torchcaps(*command)
    assert "2 of them with an older recipe or older data, --renew makes these again" in told
    renewed = torchcaps(*command, "--renew")
    assert "2 runs with an older recipe or older data set aside" in renewed
    assert "--renew makes" not in renewed


def test_a_setting_that_changed_makes_its_results_outdated(runs, tmp_path):
    changed = replace(CURVES, budgets={"smoke": {**CURVES.budgets["smoke"], "batch_size": 4}})
    assert len(outdated_runs(changed.planned(**SMOKE), tmp_path)) == 3
