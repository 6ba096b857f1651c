"""MultiMNIST: two overlaid digits, capsules against networks of equal size."""

from __future__ import annotations

from dataclasses import replace

from torchcaps.models import PlainClassifier

from ..plan import FIRST_SEED, SMOKE, Experiment, Job, Setting, Values, register
from ..records import Details
from .claims import CHAPTER, PAIRS, PAIRS_CLAIMS, SHIFTS, at_shift
from .networks import CAPSULES, CONV, DR, ONE_ROUND, VIT, Compared, small_networks
from .segmented import draw_digits, draw_segmented

_MODELS = {
    DR: "dr_capsnet_multimnist",
    ONE_ROUND: "dr_capsnet_multimnist",
    CONV: "strided_convnet_multimnist",
    VIT: "vit_multimnist",
}


def train_and_draw(job: Job) -> None:
    """Train a network; where it has capsules, draw each digit from its own."""
    network, outcome = job.train_network()
    if not isinstance(network.model, PlainClassifier):
        drawn = draw_digits(network, seed=job.run.seed, data_dir=job.data_dir)
        outcome = outcome.with_metrics(drawn.metrics)
        if job.run.seed == FIRST_SEED:
            outcome = replace(outcome, details=Details(pictures={"digits": drawn.picture}))
    job.leave_result(outcome)


def _setting(network: Compared, shift: int) -> Setting:
    model: Values = {**network.model, "name": _MODELS[network.name]}
    loss = "pair_margin" if network.has_capsules else "pair_cross_entropy"
    return Setting(
        name=at_shift(network.name, shift),
        network=network.name,
        variant=f"shift {shift}",
        recipe=CAPSULES,
        changes={
            "model": model,
            "data": {"name": f"multimnist:shift={shift},train=200000"},
            **network.changes,
            "loss": {"name": loss},
        },
        budgets={
            "quick": {"epochs": 12, "optim.decay": 0.75, "patience": 0},
            "smoke": {"data.name": f"multimnist:shift={shift},train=200,test=100"},
        },
    )


register(
    Experiment(
        label=PAIRS,
        chapter=CHAPTER,
        title="Two overlaid digits: accuracy of both, at 1.4 million parameters",
        data=("mnist",),
        gpu_minutes=200,
        seeds=3,
        metrics=(
            *("test_pair_accuracy", "test_digit_accuracy"),
            *("reconstruction_error", "class_mean_error", "whole_image_error"),
        ),
        budgets={"smoke": {**SMOKE, "data.limit": 100}},
        perform=train_and_draw,
        draw=draw_segmented,
        claims=PAIRS_CLAIMS,
        settings=tuple(_setting(small_networks(36, 10)[name], shift) for shift in SHIFTS for name in _MODELS),
        deviations=(
            "200,000 training and 10,000 test pairs, drawn once from a seed, where the paper has 60 and 10 "
            "million. Networks have equal sizes within 5 % and no decoder.",
            "Runs before data protocol 2 (commit 6af81d01) were validated on pairs of digits that training "
            "pairs show too. No row has runs of both.",
            "Both digits are right where the two largest activations are their classes.",
            "A decoder learns to draw each digit from its class capsule, on top of the frozen network; the "
            "paper trains it together with the network. It is tested with the two predicted classes. Errors "
            "are squared pixel differences, summed over a digit; beside them, those of the mean digit of "
            "the true class and of the image of both digits.",
        ),
    )
)
