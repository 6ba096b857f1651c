"""The claims of the chapter on rotations are decided by rows, and open without them."""

import pytest
from experiments.made_rows import a_row, a_run

from torchcaps.experiments import EXPERIMENTS
from torchcaps.experiments.pose import claims
from torchcaps.experiments.pose.claims import BORDERS, ROUTING, SOLIDS, TABLE
from torchcaps.experiments.pose.setting import leak_of_thesis

LABELS = (BORDERS, TABLE, SOLIDS, ROUTING)


def row(setting, metric, ours, spread=0.01):
    """Three seeds, or one where there is no spread."""
    runs = tuple(a_run(ours, seed=seed) for seed in range(1 if spread is None else 3))
    return a_row(setting, metric, ours, spread=spread, runs=runs)


def test_claims_are_open_without_rows():
    for label in LABELS:
        for claim in EXPERIMENTS[label].claims:
            assert claim.check(lambda label: []).verdict == "open"


def test_every_claim_speaks_of_settings_that_exist():
    for label in LABELS:
        experiment = EXPERIMENTS[label]
        rows = [
            row(setting.name, metric, number + 1.0 + place / 3)
            for place, metric in enumerate(experiment.metrics)
            for number, setting in enumerate(experiment.settings)
        ]
        for claim in experiment.claims:
            assert claim.check(lambda label, rows=rows: rows).verdict != "open", claim.text


@pytest.mark.parametrize(("ours", "verdict"), [((1.0, 2.0), "beyond"), ((2.0, 1.0), "not confirmed")])
def test_less_is_decided_by_the_means(ours, verdict):
    rows = [row("a", "novel_error", ours[0]), row("b", "novel_error", ours[1])]
    finding = claims.less("label", "novel_error", "a", "b")(lambda label: rows)
    assert finding.verdict == verdict
    assert f"{ours[0]:.2f}" in finding.because


@pytest.mark.parametrize("spread", [None, 5.0])
def test_a_single_seed_and_a_difference_within_the_spread_decide_nothing(spread):
    rows = [row("a", "novel_error", 1.0, spread), row("b", "novel_error", 2.0, spread)]
    assert claims.less("label", "novel_error", "a", "b")(lambda label: rows).verdict == "open"
    assert claims.below("label", "novel_error", 5.0, ("a", "b"))(lambda label: rows).verdict == "open"


def test_an_error_below_and_above_the_limit_is_told_apart():
    rows = [row("a", "novel_error", 3.0)]
    assert claims.below("label", "novel_error", 5.0, ("a",))(lambda label: rows).verdict == "beyond"
    assert claims.below("label", "novel_error", 2.0, ("a",))(lambda label: rows).verdict == "not confirmed"


def test_the_split_flatters_where_new_rotations_are_worse():
    rows = [row("a", "test_rotation_error", 3.0), row("a", "novel_error", 9.0)]
    assert claims.split_flatters("label", ("a",))(lambda label: rows).verdict == "beyond"


def test_the_leak_of_the_split_is_what_the_grid_makes_it():
    assert 0.85 < leak_of_thesis() < 0.89


def test_every_network_is_measured_on_every_split():
    names = [setting.name for setting in EXPERIMENTS[TABLE].settings]
    assert len(names) == 15
    novel = {setting.novel for setting in EXPERIMENTS[TABLE].settings}
    assert novel == {"", "tiny_meshes"}
