"""Networks that learn from few photographs."""

import pytest
from experiments.made_rows import seeds_row

from torchcaps.experiments import EXPERIMENTS

EXPERIMENT = EXPERIMENTS["beyond:photographs"]
DECIDES, KEEPS = EXPERIMENT.claims


def test_both_networks_learn_from_the_same_photographs():
    attention, self_routing = (run.recipe for run in EXPERIMENT.planned("full", seeds=1))
    assert attention.data == self_routing.data
    assert attention.data.limit == 1000
    assert self_routing.model == attention.model | {"routing": "self_routing"}


def verdict(claim, attention=60.0, self_routing=60.0, even=10.0):
    rows = [
        seeds_row("self-attention", "test_accuracy", attention, spread=0.2),
        seeds_row("self-routing", "test_accuracy", self_routing, spread=0.2),
        seeds_row("self-routing", "accuracy_with_even", even, spread=0.4),
    ]
    return claim.check(lambda label: rows if label == EXPERIMENT.label else []).verdict


@pytest.mark.parametrize(("even", "expected"), [(10.0, "beyond"), (50.01, "open"), (59.0, "not confirmed")])
def test_routing_decides_where_even_couplings_cost_ten_points(even, expected):
    assert verdict(DECIDES, even=even) == expected


@pytest.mark.parametrize(
    ("self_routing", "expected"), [(61.0, "beyond"), (58.1, "open"), (55.0, "not confirmed")]
)
def test_accuracy_is_kept_within_two_points(self_routing, expected):
    assert verdict(KEEPS, self_routing=self_routing) == expected


def test_one_network_alone_decides_nothing():
    row = seeds_row("self-routing", "test_accuracy", 60.0, spread=0.2)
    assert KEEPS.check(lambda label: [row]).verdict == "open"
