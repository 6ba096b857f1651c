"""The claims of the chapter on rotations are decided by rows."""

import pytest
from experiments.made_rows import assert_decided_both_ways, seeds_row

from torchcaps.experiments import EXPERIMENTS
from torchcaps.experiments.pose import claims
from torchcaps.experiments.pose.claims import BORDERS, IMAGES, ROUTING, SOLIDS, TABLE, WEIGHT
from torchcaps.experiments.pose.setting import leak_of_thesis


@pytest.mark.parametrize(
    ("label", "number", "larger"),
    [
        (BORDERS, 0, "^plain"),
        (BORDERS, 1, "random rotations [|]"),
        (BORDERS, 2, "novel_error"),
        (TABLE, 0, "^(?!MLP)"),
        (TABLE, 2, "^(?!EM-CapsNet, random)"),
        (TABLE, 4, "novel_error"),
        (TABLE, 5, "^(ConvNet|EM-CapsNet), split of the thesis [|] test_accuracy"),
        (TABLE, 6, "^EM-CapsNet, split of the thesis [|] training_minutes"),
        (SOLIDS, 1, "^(?!EM-CapsNet, random)"),
        (SOLIDS, 2, "^EM-CapsNet, random"),
        (SOLIDS, 3, "^EM-CapsNet, hemisphere"),
        (SOLIDS, 4, "novel_error"),
        (ROUTING, 0, "^three rounds"),
        (WEIGHT, 0, "weight 0.1"),
        (WEIGHT, 1, "weight 0.1"),
        (WEIGHT, 2, "weight 0.1"),
        (IMAGES, 0, "the same rotations"),
        (IMAGES, 1, "the same rotations"),
        (IMAGES, 2, "the same rotations"),
        (IMAGES, 3, "the same rotations"),
    ],
)
def test_every_comparison_can_hold_fail_and_stay_open(label, number, larger):
    assert_decided_both_ways(EXPERIMENTS[label], number, larger)


@pytest.mark.parametrize(
    ("budget", "verdicts"), [("full", {"confirmed", "not confirmed"}), ("quick", {"open"})]
)
def test_which_loss_is_lowest_is_not_told_by_a_short_training(budget, verdicts):
    names = ("MLP", "ConvNet", "EM-CapsNet")
    found = {
        claims.more_than_first("test_loss", *names)(
            lambda label, losses=losses: [
                seeds_row(name, "test_loss", loss, budget=budget)
                for name, loss in zip(names, losses, strict=True)
            ]
        ).verdict
        for losses in ((1.0, 2.0, 3.0), (3.0, 2.0, 1.0))
    }
    assert found == verdicts


@pytest.mark.parametrize(("label", "number"), [(SOLIDS, 0), (TABLE, 1), (WEIGHT, 3), (IMAGES, 4)])
@pytest.mark.parametrize(("error", "verdict"), [(4.0, "beyond"), (6.0, "not confirmed")])
def test_five_degrees_are_asked_of_rotations_that_were_held_out(label, number, error, verdict):
    experiment = EXPERIMENTS[label]
    rows = [
        seeds_row(
            setting.name, "test_rotation_error", 1.0 if "split of the thesis" in setting.name else error
        )
        for setting in experiment.settings
    ]
    assert experiment.claims[number].check(lambda label: rows).verdict == verdict


@pytest.mark.parametrize("spread", [None, 5.0])
def test_a_single_seed_and_an_error_within_the_spread_decide_nothing(spread):
    rows = [seeds_row("a", "novel_error", 1.0, spread), seeds_row("b", "novel_error", 2.0, spread)]
    assert claims.below("label", "novel_error", 5.0, ("a", "b"))(lambda label: rows).verdict == "open"


def test_an_error_below_and_above_the_limit_is_told_apart():
    rows = [seeds_row("a", "novel_error", 3.0)]
    assert claims.below("label", "novel_error", 5.0, ("a",))(lambda label: rows).verdict == "confirmed"
    assert claims.below("label", "novel_error", 2.0, ("a",))(lambda label: rows).verdict == "not confirmed"


@pytest.mark.parametrize(("error", "verdict"), [(4.0, "confirmed"), (6.0, "open")])
def test_a_short_training_may_reach_a_limit_and_does_not_show_that_none_does(error, verdict):
    rows = [seeds_row("a", "novel_error", error, budget="quick")]
    assert claims.below("label", "novel_error", 5.0, ("a",))(lambda label: rows).verdict == verdict


@pytest.mark.parametrize(("budget", "verdict"), [("full", "confirmed"), ("quick", "open")])
def test_short_trainings_do_not_tell_which_network_is_ahead(budget, verdict):
    rows = [
        seeds_row(name, "test_rotation_error", error, budget=budget)
        for name, error in (("a", 3.0), ("b", 9.0))
    ]
    assert claims.ahead_of_all("label", "a", ("b",))(lambda label: rows).verdict == verdict


def test_of_many_settings_one_may_lie_below_a_limit_by_chance():
    rows = [seeds_row("a", "novel_error", 3.0, 0.6)]
    alone = claims.below("label", "novel_error", 5.0, ("a",))(lambda label: rows)
    of_many = claims.below("label", "novel_error", 5.0, tuple("abcdefg"))(lambda label: rows)
    assert (alone.verdict, of_many.verdict) == ("confirmed", "open")


def test_a_limit_is_open_while_settings_that_might_reach_it_have_not_run():
    rows = [seeds_row("a", "novel_error", 3.0)]
    assert claims.below("label", "novel_error", 2.0, ("a", "b"))(lambda label: rows).verdict == "open"
    assert claims.below("label", "novel_error", 5.0, ("a", "b"))(lambda label: rows).verdict == "confirmed"


def test_a_limit_is_open_while_the_seeds_of_a_setting_that_ran_might_reach_it():
    rows = [seeds_row("a", "novel_error", 3.0), seeds_row("b", "novel_error", 3.5, 5.0)]
    assert claims.below("label", "novel_error", 2.0, ("a", "b"))(lambda label: rows).verdict == "open"


@pytest.mark.parametrize(
    ("minutes", "budget", "verdict"),
    [(4.0, "full", "confirmed"), (90.0, "full", "not confirmed"), (4.0, "quick", "open")],
)
def test_a_training_of_fewer_epochs_than_the_thesis_says_nothing_of_its_time(minutes, budget, verdict):
    rows = [seeds_row("a", "training_minutes", minutes, budget=budget)]
    assert claims.in_minutes("label", "a")(lambda label: rows).verdict == verdict


def test_the_thesis_trained_for_days():
    days = {"MLP": 4 + 5 / 24, "ConvNet": 2 + 1 / 24, "EM-CapsNet": 9 + 5 / 24}
    printed = {
        setting.name: setting.thesis["training_minutes"]
        for setting in EXPERIMENTS[TABLE].settings
        if setting.thesis
    }
    assert printed == {f"{name}, split of the thesis": pytest.approx(1440 * n) for name, n in days.items()}


@pytest.mark.parametrize("number", [5, 6])
def test_a_short_training_tells_neither_accuracy_nor_time_of_a_long_one(number):
    experiment = EXPERIMENTS[TABLE]
    rows = [
        seeds_row(setting.name, metric, value + 1.0, budget="quick")
        for value, setting in enumerate(experiment.settings)
        for metric in ("test_accuracy", "training_minutes")
    ]
    assert experiment.claims[number].check(lambda label: rows).verdict == "open"


def test_the_leak_of_the_split_is_what_the_grid_makes_it():
    assert 0.85 < leak_of_thesis() < 0.89


def test_every_network_is_measured_on_every_split():
    names = [setting.name for setting in EXPERIMENTS[TABLE].settings]
    assert len(names) == 15
    novel = {setting.novel for setting in EXPERIMENTS[TABLE].settings}
    assert novel == {"", "tiny_meshes"}
