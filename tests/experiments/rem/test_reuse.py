import json
from dataclasses import replace

import pytest

from torchcaps.core import UserError
from torchcaps.experiments.plan import Experiment, PlannedRun, Setting
from torchcaps.experiments.rem.reuse import TakeOver, again, setting_of, vary
from torchcaps.train import Machine, Silent

TABLE = Experiment(
    label="tab:source",
    chapter="none",
    title="source",
    data=(),
    gpu_minutes=0,
    settings=(
        Setting(
            name="network",
            recipe="mnist/dr_capsnet_thesis",
            changes=("keep_epochs=[1]",),
            budgets={"quick": ("epochs=7", "loss.coupling_entropy=0.5")},
            thesis=99.0,
        ),
    ),
)


def test_a_setting_is_found_by_name_and_an_unknown_one_is_an_error():
    assert setting_of((TABLE,), "network") == (TABLE, TABLE.settings[0])
    with pytest.raises(UserError, match="none of tab:source has a setting 'other'"):
        setting_of((TABLE,), "other")


def test_further_changes_hold_in_every_budget():
    setting = vary((TABLE,), "network", "varied", ("loss.coupling_entropy=0.1",))
    for budget, epochs in (("quick", 7), ("full", 1000)):
        recipe = PlannedRun(experiment=TABLE, setting=setting, budget=budget, seed=42).recipe
        assert (recipe.loss.coupling_entropy, recipe.epochs, recipe.keep_epochs) == (0.1, epochs, ())
    assert setting.thesis is None


def test_a_result_is_taken_over_without_its_weights(tmp_path):
    other = replace(TABLE, label="tab:other", settings=(again((TABLE,), "network", name="same"),))
    run = next(other.planned("quick"))
    source = PlannedRun(experiment=TABLE, setting=TABLE.settings[0], budget="quick", seed=42)
    made = source.folder(tmp_path) / "result.json"
    made.parent.mkdir(parents=True)
    made.write_text(json.dumps({"metrics": {"entropy": 1.5}, "seconds": 3.0}))

    def refuse(*anything):
        raise AssertionError("nothing is left to make")

    folder = run.folder(tmp_path)
    found = TakeOver((replace(TABLE, perform=refuse),), refuse)(run, folder, Machine(device="cpu"), Silent())
    assert found == json.loads((folder / "result.json").read_text()) == json.loads(made.read_text())


def test_settings_of_its_own_are_made_as_ever(tmp_path):
    run = next(TABLE.planned("quick"))
    take = TakeOver((TABLE,), lambda *anything: {"made": "here"})
    assert take(run, tmp_path, Machine(device="cpu"), Silent()) == {"made": "here"}
