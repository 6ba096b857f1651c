"""MultiMNIST: two overlaid digits, capsules against networks of equal size."""

from __future__ import annotations

from ..plan import Changes, Experiment, Setting, Values, register, train_recipe
from .networks import CAPSULES, CONV, DR, ONE_ROUND, VIT, Compared, small_networks

CHAPTER = "robustness"
LABEL = "robust:multimnist"
_MODELS = {
    DR: "dr_capsnet_multimnist",
    ONE_ROUND: "dr_capsnet_multimnist",
    CONV: "strided_convnet_multimnist",
    VIT: "vit_multimnist",
}
_SMOKE: Changes = {"data.limit": 100, "data.validation": 0.2, "batch_size": 16, "epochs": 1}


def _setting(network: Compared, shift: int) -> Setting:
    model: Values = {**network.model, "name": _MODELS[network.name]}
    loss = "pair_margin" if network.has_capsules else "pair_cross_entropy"
    return Setting(
        name=f"{network.name}, shift {shift}",
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
        label=LABEL,
        chapter=CHAPTER,
        title="Two overlaid digits: accuracy of both, at 1.4 million parameters",
        data=("mnist",),
        gpu_minutes=200,
        seeds=3,
        metrics=("test_pair_accuracy", "test_digit_accuracy"),
        budgets={"smoke": _SMOKE},
        perform=train_recipe,
        settings=tuple(_setting(small_networks(36, 10)[name], shift) for shift in (4, 6) for name in _MODELS),
        deviations=(
            "200,000 training and 10,000 test pairs, drawn once from a seed, where the paper has 60 and 10 "
            "million. Networks have equal sizes within 5 % and no decoder.",
            "Both digits are right where the two largest activations are their classes.",
        ),
    )
)
