"""The claims of the chapter on rotations are decided by rows, and open without them."""

import pytest
from experiments.made_rows import assert_claims_are_decided, seeds_row

from torchcaps.experiments import EXPERIMENTS
from torchcaps.experiments.pose import claims
from torchcaps.experiments.pose.claims import BORDERS, ROUTING, SOLIDS, TABLE, WEIGHT
from torchcaps.experiments.pose.setting import leak_of_thesis

LABELS = (BORDERS, TABLE, SOLIDS, ROUTING, WEIGHT)


def test_claims_are_open_without_rows():
    for label in LABELS:
        for claim in EXPERIMENTS[label].claims:
            assert claim.check(lambda label: []).verdict == "open"


@pytest.mark.parametrize("label", LABELS)
def test_every_claim_speaks_of_settings_that_exist(label):
    assert_claims_are_decided(EXPERIMENTS[label])


@pytest.mark.parametrize(("ours", "verdict"), [((1.0, 2.0), "beyond"), ((2.0, 1.0), "not confirmed")])
def test_less_is_decided_by_the_means(ours, verdict):
    rows = [seeds_row("a", "novel_error", ours[0]), seeds_row("b", "novel_error", ours[1])]
    finding = claims.less("label", "novel_error", "a", "b")(lambda label: rows)
    assert finding.verdict == verdict
    assert f"{ours[0]:.2f}" in finding.because


@pytest.mark.parametrize("spread", [None, 5.0])
def test_a_single_seed_and_a_difference_within_the_spread_decide_nothing(spread):
    rows = [seeds_row("a", "novel_error", 1.0, spread), seeds_row("b", "novel_error", 2.0, spread)]
    assert claims.less("label", "novel_error", "a", "b")(lambda label: rows).verdict == "open"
    assert claims.below("label", "novel_error", 5.0, ("a", "b"))(lambda label: rows).verdict == "open"


def test_an_error_below_and_above_the_limit_is_told_apart():
    rows = [seeds_row("a", "novel_error", 3.0)]
    assert claims.below("label", "novel_error", 5.0, ("a",))(lambda label: rows).verdict == "beyond"
    assert claims.below("label", "novel_error", 2.0, ("a",))(lambda label: rows).verdict == "not confirmed"


def test_a_limit_is_open_while_settings_that_might_reach_it_have_not_run():
    rows = [seeds_row("a", "novel_error", 3.0)]
    assert claims.below("label", "novel_error", 2.0, ("a", "b"))(lambda label: rows).verdict == "open"
    assert claims.below("label", "novel_error", 5.0, ("a", "b"))(lambda label: rows).verdict == "beyond"


@pytest.mark.parametrize(
    ("minutes", "budget", "verdict"),
    [(4.0, "full", "beyond"), (90.0, "full", "not confirmed"), (4.0, "quick", "open")],
)
def test_a_training_of_fewer_epochs_than_the_thesis_says_nothing_of_its_time(minutes, budget, verdict):
    rows = [seeds_row("a", "training_minutes", minutes, budget=budget)]
    assert claims.in_minutes("label", "a")(lambda label: rows).verdict == verdict


def test_the_split_flatters_where_new_rotations_are_worse():
    rows = [seeds_row("a", "test_rotation_error", 3.0), seeds_row("a", "novel_error", 9.0)]
    assert claims.split_flatters("label", ("a",))(lambda label: rows).verdict == "beyond"


def test_the_leak_of_the_split_is_what_the_grid_makes_it():
    assert 0.85 < leak_of_thesis() < 0.89


def test_every_network_is_measured_on_every_split():
    names = [setting.name for setting in EXPERIMENTS[TABLE].settings]
    assert len(names) == 15
    novel = {setting.novel for setting in EXPERIMENTS[TABLE].settings}
    assert novel == {"", "tiny_meshes"}
