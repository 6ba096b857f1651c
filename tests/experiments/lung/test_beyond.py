"""Experiments beyond the thesis's table: what is compared differs in one thing alone."""

import pytest

from torchcaps.experiments import EXPERIMENTS
from torchcaps.experiments.lung import false_marks, runs, segcaps_plus
from torchcaps.experiments.runner import run_missing
from torchcaps.models import build_model
from torchcaps.train import Machine, recipe_as_json


def planned(label, budget):
    return {run.setting.name: run for run in EXPERIMENTS[label].planned(budget, seeds=1)}


def flat(values, prefix=""):
    found = {}
    for key, value in values.items():
        nested = flat(value, f"{prefix}{key}.") if isinstance(value, dict) else {f"{prefix}{key}": value}
        found.update(nested)
    return found


@pytest.mark.parametrize("budget", ["smoke", "quick", "full"])
def test_each_setting_of_a_better_segcaps_changes_one_thing(budget):
    runs_of = planned(segcaps_plus.LABEL, budget)
    base = flat(recipe_as_json(runs_of.pop(segcaps_plus.BASELINE).recipe))
    for run in runs_of.values():
        now = flat(recipe_as_json(run.recipe))
        assert len([key for key in now if base.get(key) != now[key]]) == 1
        build_model(run.recipe.model)


@pytest.mark.parametrize("budget", ["quick", "full"])
def test_twice_the_regions_are_learned_in_half_the_epochs(budget):
    for run in planned(false_marks.LABEL, budget).values():
        whole = 2 if "-empty-1/" in run.recipe.data.name else 1
        assert run.recipe.epochs * whole == (12 if budget == "quick" else 40)


@pytest.mark.slow
def test_regions_with_and_without_nodules_lie_apart(tmp_path):
    plain = runs.prepare_phantom(tmp_path, 3)
    both = runs.prepare_phantom(tmp_path, 3, negatives=0.5)
    assert plain != both
    assert (plain / "test.txt").read_text() == (both / "test.txt").read_text()
    assert len((both / "train.txt").read_text().split()) > len((plain / "train.txt").read_text().split())


@pytest.mark.slow
def test_whole_scans_are_measured_after_training(tmp_path):
    experiment = EXPERIMENTS[false_marks.LABEL]
    done = run_missing(experiment, tmp_path, Machine(device="cpu"), budget="smoke", seeds=1)
    assert done.done == 2
