"""Capsules and convolutions of equal size, and what shrinking gives."""

from dataclasses import replace

import pytest
import torch
from experiments.made_rows import a_result

from torchcaps import create_model
from torchcaps.experiments import EXPERIMENTS
from torchcaps.experiments.equal_size import _change
from torchcaps.experiments.records import Protocol
from torchcaps.experiments.results import summarise
from torchcaps.inspection import count_parameters


def test_both_networks_have_the_parameters_that_their_names_say():
    experiment = EXPERIMENTS["beyond:equal-size"]
    for run in experiment.planned("full", seeds=1):
        model = create_model(run.recipe.model["name"])
        assert f"{count_parameters(model):,} parameters" in run.setting.name


def test_both_networks_are_trained_alike():
    experiment = EXPERIMENTS["beyond:equal-size"]
    capsules, convolutions = (run.recipe for run in list(experiment.planned("full", seeds=1))[:2])
    assert replace(capsules, model=convolutions.model, loss=convolutions.loss) == convolutions


@pytest.mark.parametrize("name", ["rotated", "warped", "occluded"])
def test_every_network_sees_the_same_changed_digits(name):
    images = torch.randint(0, 256, (3, 1, 28, 28), dtype=torch.uint8)
    changed = _change(images, name)
    assert torch.equal(changed, _change(images, name))
    assert changed.shape == images.shape
    assert not torch.equal(changed, images)


def row(setting, metric, value):
    """Three seeds, a thousandth apart."""
    results = [a_result(seed, **{metric: value * (1 + seed / 1000)}) for seed in range(3)]
    found = summarise(results, setting=setting.name, metric=metric, protocols=[Protocol()])
    return replace(found, variant=setting.variant)


def verdict(label, claim=0, **values):
    """What a claim says of two settings with these numbers."""
    experiment = EXPERIMENTS[label]
    rows = [
        row(setting, metric, value)
        for metric, pair in values.items()
        for setting, value in zip(experiment.settings[:2], pair, strict=True)
    ]
    return experiment.claims[claim].check(lambda asked: rows if asked == label else []).verdict


def test_capsules_lead_only_where_they_are_better_everywhere():
    better = {f"{name}_accuracy": (0.9, 0.8) for name in ("test", "rotated", "warped", "occluded")}
    assert verdict("beyond:equal-size", **better) == "beyond"
    assert verdict("beyond:equal-size", **{**better, "warped_accuracy": (0.7, 0.8)}) == "not confirmed"
    assert verdict("beyond:equal-size", **{**better, "warped_accuracy": (0.8005, 0.8)}) == "open"
    assert verdict("beyond:equal-size", test_accuracy=(0.9, 0.8)) == "open"


def test_shrinking_pays_only_where_time_and_size_fall():
    gains = {"parameters_shrunk": (100, 50), "cpu_share_1": (1.0, 0.9), "cpu_share_128": (1.0, 0.6)}
    assert verdict("beyond:shrunk", **gains) == "beyond"
    assert verdict("beyond:shrunk", **{**gains, "cpu_share_1": (1.0, 1.1)}) == "not confirmed"
    assert verdict("beyond:shrunk", **{**gains, "cpu_share_1": (1.0, 0.999)}) == "open"
    assert verdict("beyond:shrunk", **{**gains, "parameters_shrunk": (50, 100)}) == "not confirmed"
    assert verdict("beyond:shrunk", cpu_share_1=(1.0, 0.9)) == "open"


def test_a_shrunk_network_may_lose_half_a_point():
    assert verdict("beyond:shrunk", claim=1, test_accuracy=(0.98, 0.98)) == "beyond"
    assert verdict("beyond:shrunk", claim=1, test_accuracy=(0.98, 0.97)) == "not confirmed"
    assert verdict("beyond:shrunk", claim=1, test_accuracy=(0.98, 0.9755)) == "open"
    assert verdict("beyond:shrunk", claim=1) == "open"
