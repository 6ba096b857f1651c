import json

import pytest

from torchcaps.core import UserError
from torchcaps.train import Machine, build, recipe_as_json, stored_recipe, train

from small_runs import SHIFTED_DIGITS, small_recipe

MARGINS = {"present": 0.9, "absent": 0.1, "absent_weight": 0.5}  # stored with every loss
OPTIM = ("learning_rate", "decay", "decay_steps", "floor", "weight_decay")


def recipe(**changes):
    optim = {"learning_rate": 1e-2, "decay": 0.7}
    return small_recipe(**{"data": SHIFTED_DIGITS, "optim": optim, **changes})


def as_before(plain):
    """A recipe as it was stored before tasks, schedules and rules of fitting had names."""
    old = {key: value for key, value in plain.items() if key != "select_by"}
    old["data"] = {key: value for key, value in old["data"].items() if key not in ("fit", "images_per_place")}
    old["loss"] = {**MARGINS, **old["loss"]}
    old["optim"] = {key: old["optim"][key] for key in OPTIM}
    if old["pruning"] is not None:
        pruning = dict(old["pruning"])
        old["pruning"] = {**pruning, "min_accuracy": pruning.pop("min_metric") or 0.0}
        del old["pruning"]["min_metric"]
    return old


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"loss": {"name": "spread"}, "pruning": {"strength": 1e-2}},
        {"loss": {"name": "margin", "present": 0.8}},
        {"loss": {"name": "cross_entropy"}, "annealing": {"r_max": 3}},
        {"data": {"name": "imagenette"}},
        {"data": {"name": "folder:photographs"}},  # which was stretched
        {"pruning": {"min_metric": 0.5}},
    ],
    ids=["plain", "spread", "margin", "cross entropy", "photographs", "folder", "least accuracy"],
)
def test_a_recipe_of_before_is_read_as_it_was_meant(changes):
    now = recipe(**changes)
    old = as_before(recipe_as_json(now))
    kept = json.dumps(old)
    found = stored_recipe(old)
    fit = "stretch" if now.data.name.startswith("folder:") else "crop"
    assert recipe_as_json(found) == {
        **recipe_as_json(now),
        "data": {**recipe_as_json(now)["data"], "fit": fit},
    }
    assert json.dumps(old) == kept  # what was given is not changed


def test_a_recipe_of_today_is_not_read_as_an_old_one():
    now = recipe()
    assert stored_recipe(recipe_as_json(now)) == now


def test_a_folder_of_images_is_not_continued_with_another_rule(tmp_path):
    settings = recipe(epochs=1)
    train(settings, tmp_path, Machine(device="cpu"))
    stated = recipe_as_json(settings)
    stated["data"]["name"] = f"folder:{tmp_path}"
    (tmp_path / "recipe.json").write_text(json.dumps(as_before(stated)))
    now = build({**stated, "epochs": 2})
    assert now.data.fit == "crop"
    with pytest.raises(UserError, match=r"\(changed: data, epochs\)"):
        train(now, tmp_path, Machine(device="cpu"), resume=True)
