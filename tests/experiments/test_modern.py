"""Accuracy after modern training against the thesis's figures."""

import re

import pytest
from experiments.made_rows import a_row

from torchcaps.experiments import EXPERIMENTS
from torchcaps.experiments.plan import PlannedRun

EXPERIMENT = EXPERIMENTS["beyond:modern-training"]
(CLAIM,) = EXPERIMENT.claims
PRINTED = {s.name: s.thesis["test_accuracy"] for s in EXPERIMENT.settings if s.thesis}
PACKAGED = [s.name for s in EXPERIMENT.settings if s.thesis and not s.changes]
TRIED = [name for name in PRINTED if name not in PACKAGED]


def rows(excess, **changed):
    """Three seeds of every setting with a figure in the thesis, so many points above it."""
    return [
        a_row(
            name,
            "test_accuracy",
            thesis + changed.get(name, excess),
            thesis=thesis,
            spread=0.1,
            seeds=3,
        )
        for name, thesis in PRINTED.items()
    ]


@pytest.mark.parametrize(("excess", "verdict"), [(1.0, "beyond"), (0.28, "open"), (-1.0, "not confirmed")])
def test_the_claim_follows_the_accuracy_and_its_spread(excess, verdict):
    assert CLAIM.check(lambda label: rows(excess)).verdict == verdict


@pytest.mark.parametrize("below", PACKAGED)
def test_one_recipe_below_the_thesis_refutes_the_claim(below):
    assert CLAIM.check(lambda label: rows(1.0, **{below: -1.0})).verdict == "not confirmed"


@pytest.mark.parametrize(("packaged", "verdict"), [(1.0, "beyond"), (-1.0, "not confirmed")])
def test_what_was_tried_beside_a_recipe_decides_nothing(packaged, verdict):
    found = CLAIM.check(lambda label: rows(packaged, **dict.fromkeys(TRIED, -packaged)))
    assert found.verdict == verdict
    assert not any(f"{name} " in found.because for name in TRIED)


def test_missing_recipes_leave_the_claim_open():
    assert CLAIM.check(lambda label: rows(1.0)[:2]).verdict == "open"
    assert CLAIM.check(lambda label: [row for row in rows(1.0) if row.setting in TRIED]).verdict == "open"


def test_a_setting_says_whether_it_is_a_packaged_recipe():
    assert {s.note for s in EXPERIMENT.settings if s.changes} == {"a variant of the packaged recipe"}
    assert {s.note for s in EXPERIMENT.settings if not s.changes} == {""}


def test_the_title_has_the_epochs_of_the_settings():
    runs = [PlannedRun(experiment=EXPERIMENT, setting=s, budget="full", seed=42) for s in EXPERIMENT.settings]
    epochs = [run.recipe.epochs for run in runs]
    assert re.findall(r"\d+", EXPERIMENT.title) == [str(min(epochs)), str(max(epochs))]
