"""Accuracy after modern training against the thesis's figures."""

import pytest
from experiments.made_rows import a_row, a_run

from torchcaps.experiments import EXPERIMENTS

EXPERIMENT = EXPERIMENTS["beyond:modern-training"]
PRINTED = {s.name: s.thesis["test_accuracy"] for s in EXPERIMENT.settings if s.thesis}


def rows(excess, **changed):
    """Three seeds of every network with a figure in the thesis, so many points above it."""
    return [
        a_row(
            name,
            "test_accuracy",
            thesis + changed.get(name, excess),
            thesis=thesis,
            spread=0.1,
            runs=tuple(a_run(thesis, seed=42 + n) for n in range(3)),
        )
        for name, thesis in PRINTED.items()
    ]


@pytest.mark.parametrize(("excess", "verdict"), [(1.0, "beyond"), (0.1, "open"), (-1.0, "not confirmed")])
def test_the_claim_follows_the_accuracy_and_its_spread(excess, verdict):
    assert EXPERIMENT.claims[0].check(lambda label: rows(excess)).verdict == verdict


def test_one_network_below_the_thesis_refutes_the_claim():
    below = next(iter(PRINTED))
    assert EXPERIMENT.claims[0].check(lambda label: rows(1.0, **{below: -1.0})).verdict == "not confirmed"


def test_missing_networks_leave_the_claim_open():
    assert EXPERIMENT.claims[0].check(lambda label: rows(1.0)[:2]).verdict == "open"
    assert EXPERIMENT.claims[0].check(lambda label: []).verdict == "open"
