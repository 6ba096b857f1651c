"""The claims on robustness are decided by rows."""

import pytest
from experiments.made_rows import assert_decided_both_ways, seeds_row

from torchcaps.experiments import EXPERIMENTS
from torchcaps.experiments.robustness.claims import AFFNIST, CLUTTER, IMAGES, PAIRS, SCENES

ETH80, SMALLNORB = "robust:viewpoints-eth80", "tab:novelviewpoints"
LABELS = (CLUTTER, IMAGES, SCENES, PAIRS, AFFNIST, ETH80, SMALLNORB)


@pytest.mark.parametrize(
    ("label", "number", "larger"),
    [
        (CLUTTER, 0, "^convolutional"),
        (CLUTTER, 1, r"\+REM"),
        (CLUTTER, 2, "^DR-CapsNet, clutter"),
        (CLUTTER, 3, "test_accuracy"),
        (CLUTTER, 4, "test_accuracy"),
        (CLUTTER, 5, "^DR-CapsNet, clutter"),
        (CLUTTER, 6, r"\| tree_precision"),
        (CLUTTER, 7, r"\| tree_precision"),
        (CLUTTER, 8, "part_purity$"),
        (CLUTTER, 9, "^DR-CapsNet, clutter"),
        (IMAGES, 0, "^DR-CapsNet, [0-9]"),
        (SCENES, 0, "^gamma"),
        (SCENES, 1, "^gamma"),
        (PAIRS, 0, "^DR-CapsNet, shift"),
        (PAIRS, 1, "^DR-CapsNet, shift"),
        (PAIRS, 2, "class_mean_error"),
        (AFFNIST, 0, r"\+REM"),
        (AFFNIST, 1, "^DR-CapsNet, 1.8"),
        (AFFNIST, 2, "undertrained_affnist_style_entropy"),
        (ETH80, 0, r"[+]Q [|] familiar"),
        (ETH80, 1, r"[+]Q [|] novel"),
        (SMALLNORB, 0, r"[+]Q [|] familiar"),
        (SMALLNORB, 1, r"[+]Q [|] novel"),
    ],
)
def test_every_claim_can_hold_fail_and_stay_open(label, number, larger):
    assert_decided_both_ways(EXPERIMENTS[label], number, larger)


def test_all_claims_are_among_those():
    assert [len(EXPERIMENTS[label].claims) for label in LABELS] == [10, 1, 2, 3, 3, 2, 2]


@pytest.mark.parametrize(
    ("rem", "budget", "verdict"),
    [(85.0, "full", "confirmed"), (80.0, "full", "not confirmed"), (85.0, "quick", "open")],
)
def test_what_rem_does_to_affine_digits_is_decided_by_the_protocol_of_the_thesis(rem, budget, verdict):
    made = (("DR-CapsNet+Q", 83.0), ("DR-CapsNet+REM", rem))
    metric = "affnist_style_quantized_accuracy"
    rows = [seeds_row(name, metric, value, budget=budget) for name, value in made]
    assert EXPERIMENTS[AFFNIST].claims[0].check(lambda label: rows).verdict == verdict


@pytest.mark.parametrize(("early", "verdict"), [(8.45, "confirmed"), (4.0, "not confirmed")])
def test_short_trainings_do_not_tell_how_the_entropy_ends(early, verdict):
    metrics = (("undertrained_affnist_style_entropy", early), ("affnist_style_entropy", 5.93))
    for budget, found in (("full", verdict), ("quick", "open")):
        rows = [seeds_row("DR-CapsNet+REM", metric, value, budget=budget) for metric, value in metrics]
        assert EXPERIMENTS[AFFNIST].claims[2].check(lambda label, rows=rows: rows).verdict == found


@pytest.mark.parametrize(
    ("label", "number", "of_long"),
    [
        *((label, 1, "not confirmed") for label in (PAIRS, AFFNIST, CLUTTER, SCENES)),
        (IMAGES, 0, "not confirmed"),
        (CLUTTER, 0, "beyond"),
    ],
)
def test_short_trainings_do_not_tell_capsules_and_convolutions_apart(label, number, of_long):
    experiment = EXPERIMENTS[label]
    for budget, verdict in (("full", of_long), ("quick", "open")):
        rows = [
            seeds_row(setting.name, metric, 90.0 if setting.name.startswith("conv") else 80.0, budget=budget)
            for setting in experiment.settings
            for metric in experiment.metrics
        ]
        assert experiment.claims[number].check(lambda label, rows=rows: rows).verdict == verdict
