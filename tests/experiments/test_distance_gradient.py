"""Which rounds of routing the gradient flows through."""

from dataclasses import replace

import pytest
from experiments.made_rows import seeds_row

from torchcaps.experiments import EXPERIMENTS
from torchcaps.experiments.distance_gradient import LABEL

EXPERIMENT = EXPERIMENTS[LABEL]


RECIPES = {run.setting.name: run.recipe for run in EXPERIMENT.planned("full", seeds=1)}
LAST, WIDE = "through the last", "through the last, matrices of 1"


@pytest.mark.parametrize("routing", sorted({setting.network for setting in EXPERIMENT.settings}))
def test_networks_of_one_routing_differ_in_their_gradient_alone(routing):
    all_rounds, last = RECIPES[f"{routing}, gradient through all rounds"], RECIPES[f"{routing}, {LAST}"]
    assert all_rounds.model["routing"] == {**last.model["routing"], "gradient": "full"}
    assert replace(all_rounds, model=last.model) == last


@pytest.mark.parametrize("name", [name for name in RECIPES if name.endswith("matrices of 1")])
def test_wide_matrices_are_the_only_difference(name):
    wide, narrow = RECIPES[name], RECIPES[name.removesuffix(", matrices of 1")]
    assert wide.model == {**narrow.model, "init_std": 1.0}
    assert replace(wide, model=narrow.model) == narrow


def verdicts(**losses):
    """What the claims say where all variants but those named have a loss of 0.02."""
    by_variant = {LAST: losses.get("last", 0.02), WIDE: losses.get("wide", 0.02)}
    rows = [
        seeds_row(setting.name, "test_loss", by_variant.get(setting.variant, 0.02), spread=0.001)
        for setting in EXPERIMENT.settings
    ]
    return [claim.check(lambda asked: rows if asked == LABEL else []).verdict for claim in EXPERIMENT.claims]


def test_a_higher_loss_with_constant_couplings_confirms_the_claim_and_a_lower_one_refutes_it():
    assert verdicts(last=0.2)[0] == "beyond"
    assert verdicts(last=0.01)[0] == "not confirmed"


def test_a_lower_loss_from_wide_matrices_confirms_the_claim_and_a_higher_one_refutes_it():
    assert verdicts(last=0.2, wide=0.05)[1] == "beyond"
    assert verdicts(last=0.2, wide=0.4)[1] == "not confirmed"
