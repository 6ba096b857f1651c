"""The claims on robustness are decided by rows, and open without them."""

import pytest
from experiments.made_rows import a_row, a_run

from torchcaps.experiments import EXPERIMENTS
from torchcaps.experiments.plan import larger, larger_metric
from torchcaps.experiments.robustness.claims import AFFNIST, CLUTTER, IMAGES, PAIRS, SCENES

LABELS = (CLUTTER, IMAGES, SCENES, PAIRS, AFFNIST)


def row(setting, metric, ours, spread=0.01):
    """Three seeds, or one where there is no spread."""
    runs = tuple(a_run(ours, seed=seed) for seed in range(1 if spread is None else 3))
    return a_row(setting, metric, ours, spread=spread, runs=runs)


def test_claims_are_open_without_rows():
    claims = [claim for label in LABELS for claim in EXPERIMENTS[label].claims]
    assert len(claims) > 15
    assert {claim.check(lambda label: []).verdict for claim in claims} == {"open"}


def test_every_claim_speaks_of_settings_and_metrics_that_exist():
    for label in LABELS:
        experiment = EXPERIMENTS[label]
        rows = [
            row(setting.name, metric, number + 1.0 + place / 3)
            for place, metric in enumerate(experiment.metrics)
            for number, setting in enumerate(experiment.settings)
        ]
        for claim in experiment.claims:
            assert claim.check(lambda label, rows=rows: rows).verdict != "open", claim.text


@pytest.mark.parametrize(("second", "verdict"), [(1.0, "confirmed"), (3.0, "not confirmed")])
def test_every_pair_has_to_be_in_order(second, verdict):
    rows = [row("a", "m", 2.0), row("b", "m", 1.0), row("c", "m", second)]
    finding = larger("label", "m", [("a", "b"), ("a", "c")], " %")(lambda label: rows)
    assert finding.verdict == verdict
    assert ("not in c" in finding.because) == (verdict == "not confirmed")
    assert "a 2.00 ± 0.01 %" in finding.because


def test_a_single_seed_decides_nothing():
    rows = [row("a", "m", 2.0, None), row("b", "m", 1.0, None)]
    assert larger("label", "m", [("a", "b")])(lambda label: rows).verdict == "open"


@pytest.mark.parametrize(("more", "verdict"), [(2.0, "confirmed"), (0.5, "not confirmed")])
def test_two_metrics_of_one_setting_are_compared(more, verdict):
    rows = [row("a", "m", more), row("a", "n", 1.0)]
    assert larger_metric("label", "m", "n", ["a"])(lambda label: rows).verdict == verdict


def test_a_setting_without_one_of_the_metrics_leaves_the_claim_open():
    rows = [row("a", "m", 2.0), row("a", "n", 1.0), row("b", "m", 2.0)]
    assert larger_metric("label", "m", "n", ["a", "b"])(lambda label: rows).verdict == "open"
