"""Capsules and convolutions of equal size."""

from dataclasses import replace

import pytest
import torch
from experiments.made_rows import seeds_row

from torchcaps import create_model
from torchcaps.experiments import EXPERIMENTS
from torchcaps.experiments.equal_size import _change
from torchcaps.inspection import count_parameters

EXPERIMENT = EXPERIMENTS["beyond:equal-size"]


def test_both_networks_have_the_parameters_that_their_names_say():
    for run in EXPERIMENT.planned("full", seeds=1):
        model = create_model(run.recipe.model["name"])
        assert f"{count_parameters(model):,} parameters" in run.setting.name


def test_both_networks_are_trained_alike():
    capsules, convolutions = (run.recipe for run in list(EXPERIMENT.planned("full", seeds=1))[:2])
    assert replace(capsules, model=convolutions.model, loss=convolutions.loss) == convolutions


@pytest.mark.parametrize("name", ["rotated", "warped", "occluded"])
def test_every_network_sees_the_same_changed_digits(name):
    images = torch.randint(0, 256, (3, 1, 28, 28), dtype=torch.uint8)
    changed = _change(images, name)
    assert torch.equal(changed, _change(images, name))
    assert changed.shape == images.shape
    assert not torch.equal(changed, images)


def verdict(**values):
    """What the claim says of capsules and convolutions with these numbers, over three seeds."""
    rows = [
        replace(seeds_row(setting.name, metric, value, spread=0.05), variant=setting.variant)
        for metric, pair in values.items()
        for setting, value in zip(EXPERIMENT.settings[:2], pair, strict=True)
    ]
    return EXPERIMENT.claims[0].check(lambda label: rows if label == EXPERIMENT.label else []).verdict


def test_capsules_lead_only_where_they_are_better_everywhere():
    better = {f"{name}_accuracy": (90.0, 80.0) for name in ("test", "rotated", "warped", "occluded")}
    assert verdict(**better) == "beyond"
    assert verdict(**{**better, "warped_accuracy": (70.0, 80.0)}) == "not confirmed"
    assert verdict(**{**better, "warped_accuracy": (80.05, 80.0)}) == "open"
    assert verdict(test_accuracy=(90.0, 80.0)) == "open"
