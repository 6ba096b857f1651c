"""Which rounds of routing the gradient flows through."""

from dataclasses import replace

from experiments.made_rows import seeds_row

from torchcaps.experiments import EXPERIMENTS
from torchcaps.experiments.distance_gradient import LABEL

EXPERIMENT = EXPERIMENTS[LABEL]


def test_networks_of_one_routing_differ_in_their_gradient_alone():
    recipes = [run.recipe for run in EXPERIMENT.planned("full", seeds=1)]
    for all_rounds, last in zip(recipes[::2], recipes[1::2], strict=True):
        assert all_rounds.model["routing"] == {**last.model["routing"], "gradient": "full"}
        assert replace(all_rounds, model=last.model) == last


def verdict(last):
    """What the claim says where gradients through all rounds give a loss of 0.02."""
    losses = [last if setting.variant == "through the last" else 0.02 for setting in EXPERIMENT.settings]
    rows = [
        seeds_row(setting.name, "test_loss", loss, spread=0.001)
        for setting, loss in zip(EXPERIMENT.settings, losses, strict=True)
    ]
    return EXPERIMENT.claims[0].check(lambda asked: rows if asked == LABEL else []).verdict


def test_a_higher_loss_with_constant_couplings_confirms_the_claim_and_a_lower_one_refutes_it():
    assert verdict(0.2) == "beyond"
    assert verdict(0.01) == "not confirmed"
