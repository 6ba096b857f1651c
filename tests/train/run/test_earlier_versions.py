"""Runs that were written before tasks, schedules and rules of fitting had names."""

import json

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import load_file

from torchcaps.core import UserError
from torchcaps.train import (
    Machine,
    build,
    evaluate_run,
    load_run,
    read_recipe,
    recipe_as_json,
    stored_recipe,
    train,
)
from torchcaps.train.run import DataCard
from torchcaps.zoo import predict

from small_runs import SHIFTED_DIGITS, Killer, small_recipe

CPU = Machine(device="cpu")
MARGINS = {"present": 0.9, "absent": 0.1, "absent_weight": 0.5}  # stored with every loss
OPTIM = ("learning_rate", "decay", "decay_steps", "floor", "weight_decay")


def recipe(**changes):
    optim = {"learning_rate": 1e-2, "decay": 0.7}
    return small_recipe(**{"data": SHIFTED_DIGITS, "optim": optim, **changes})


def as_before(plain):
    """A recipe as it was stored."""
    old = {key: value for key, value in plain.items() if key != "select_by"}
    old["data"] = {key: value for key, value in old["data"].items() if key not in ("fit", "images_per_place")}
    old["loss"] = {**MARGINS, **old["loss"]}
    old["optim"] = {key: old["optim"][key] for key in OPTIM}
    if old["pruning"] is not None:
        pruning = dict(old["pruning"])
        old["pruning"] = {**pruning, "min_accuracy": pruning.pop("min_metric") or 0.0}
        del old["pruning"]["min_metric"]
    return old


def rewrite(path, change):
    path.write_text(json.dumps(change(json.loads(path.read_text()))))


def card_as_before(card):
    """Images of one size were not cropped."""
    return {**{key: value for key, value in card.items() if key not in ("task", "fit")}, "is_cropped": False}


def checkpoint_as_before(path, settings, steps):
    """The rate of the step before, no schedule, and the technique by its name."""
    state = torch.load(path, weights_only=True)
    progress, optim = state["progress"], settings.optim
    metrics, last = progress.pop("best_metrics"), progress["next_epoch"] * steps - 1
    exponent = last / optim.decay_steps if optim.decay_steps else last // steps
    (group,) = state["optimizer"]["param_groups"]
    group["lr"] = max(optim.learning_rate * optim.decay**exponent, optim.floor)
    del group["initial_lr"], state["schedule"]
    technique = state.pop("technique")
    for name in ("annealing", "pruning"):
        state[name] = technique if getattr(settings, name) is not None else None
    state["progress"] = {
        "next_epoch": progress["next_epoch"],
        "best_loss": progress["best"],
        "best_accuracy": metrics["val_accuracy"],
        "best_epoch": progress["best_epoch"],
        "best_iterations": technique.get("rounds", 0),
        "seconds": progress["seconds"],
    }
    torch.save(state, path)


def age(folder, settings, steps=2):
    rewrite(folder / "recipe.json", as_before)
    rewrite(folder / "data.json", card_as_before)
    checkpoint_as_before(folder / "last.ckpt", settings, steps)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"loss": {"name": "spread"}, "pruning": {"strength": 1e-2}},
        {"loss": {"name": "margin", "present": 0.8}},
        {"loss": {"name": "cross_entropy"}, "annealing": {"r_max": 3}},
        {"data": {"name": "imagenette"}},
        {"pruning": {"min_metric": 0.5}},
    ],
    ids=["plain", "spread", "margin", "cross entropy", "photographs", "least accuracy"],
)
def test_a_recipe_is_read_as_it_was_meant(changes):
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


@pytest.mark.parametrize(("is_cropped", "fit"), [(True, "crop"), (False, "stretch"), (None, "stretch")])
def test_a_card_says_whether_images_were_cropped_or_stretched(is_cropped, fit):
    values = {"classes": ["a", "b"], "mean": [0.5], "std": [0.2], "channels": 1, "height": 4, "width": 4}
    old = values if is_cropped is None else {**values, "is_cropped": is_cropped}
    assert DataCard.from_plain(old, "data.json").fit == fit


@pytest.mark.parametrize("changes", [{"loss": {"name": "spread"}}, {"pruning": {"strength": 1e-2}}])
def test_a_run_is_loaded_and_evaluated(changes, tmp_path):
    settings = recipe(**changes, epochs=1)
    result = train(settings, tmp_path, CPU)
    age(tmp_path, settings)
    run = load_run(tmp_path)
    assert run.recipe.loss == settings.loss
    found = evaluate_run(run)
    assert found["loss"] == pytest.approx(result["metrics"]["test_loss"], rel=1e-6)
    assert found["accuracy"] == result["metrics"]["test_accuracy"]


def test_pictures_are_stretched_as_they_were(tmp_path):
    settings = recipe(epochs=1)
    train(settings, tmp_path / "run", CPU)
    age(tmp_path / "run", settings)
    pixels = np.random.default_rng(0).integers(0, 256, (28, 50), dtype=np.uint8)
    wide, stretched = Image.fromarray(pixels), tmp_path / "stretched.png"
    wide.save(tmp_path / "wide.png")
    wide.resize((28, 28), Image.Resampling.BILINEAR).save(stretched)
    first, second = predict(load_run(tmp_path / "run"), [tmp_path / "wide.png", stretched])
    assert first["activations"] == second["activations"]


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"loss": {"name": "spread"}},
        {"optim": {"learning_rate": 1e-2, "decay": 0.5, "decay_steps": 4, "floor": 1e-3}},
        {"annealing": {"r_max": 3, "patience": 1}},
        {"pruning": {"strength": 1e-2}},
    ],
    ids=["rate by epochs", "spread", "rate by steps", "annealing", "pruning"],
)
def test_a_checkpoint_is_continued_to_the_same_bits(changes, tmp_path, monkeypatch):
    monkeypatch.setattr("torchcaps.train.loop.kept._SECONDS_BETWEEN_CHECKPOINTS", 0.0)
    settings, whole, cut = recipe(**changes), tmp_path / "whole", tmp_path / "cut"
    expected = train(settings, whole, CPU)
    with pytest.raises(KeyboardInterrupt):
        train(settings, cut, CPU, watcher=Killer(1))
    age(cut, settings)
    assert train(settings, cut, CPU, resume=True)["metrics"] == expected["metrics"]
    for path in sorted(whole.glob("*.safetensors")):
        first, second = load_file(path), load_file(cut / path.name)
        assert all(torch.equal(values, second[name]) for name, values in first.items())
    assert read_recipe(cut) == settings


def test_a_folder_of_images_is_not_continued_with_another_rule(tmp_path):
    settings = recipe(epochs=1)
    train(settings, tmp_path, CPU)
    age(tmp_path, settings)

    def in_folder(plain):
        return {**plain, "data": {**plain["data"], "name": f"folder:{tmp_path}"}}

    rewrite(tmp_path / "recipe.json", in_folder)
    now = build({**in_folder(recipe_as_json(settings)), "epochs": 2})
    assert now.data.fit == "crop"
    with pytest.raises(UserError, match=r"\(changed: data, epochs\)"):
        train(now, tmp_path, CPU, resume=True)
