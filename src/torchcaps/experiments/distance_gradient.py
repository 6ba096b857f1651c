"""Which rounds of routing the gradient flows through, and what a small gamma-CapsNet learns then.

This is not an experiment of the thesis. Its code holds the couplings of scaled-distance routing constant, and
its matrices start with a deviation of 0.1, as ours do: votes are then shorter than the capsules that cast
them. From matrices of 1 they are longer, and the routing cuts them to the length of their capsules.
"""

from __future__ import annotations

from collections.abc import Iterator

from .plan import SMOKE, Changes, Setting, larger, on_mnist5k, our_claim, register

LABEL = "beyond:distance-gradient"
_ROUTINGS = {
    "scaled distance, mean over a sample": {"name": "scaled_distance", "scope": "sample"},
    "scaled distance, mean over the batch": {"name": "scaled_distance", "scope": "batch"},
    "dynamic": {"name": "dynamic"},
}
_BY_DISTANCE = tuple(_ROUTINGS)[:2]
_ALL, _LAST = "gradient through all rounds", "through the last"
_WIDE = "matrices of 1"


def _setting(routing: str, variant: str, changes: Changes) -> Setting:
    return Setting(
        name=f"{routing}, {variant}",
        recipe="mnist5k/gamma_capsnet_small",
        network=routing,
        variant=variant,
        changes={
            "model.decoder": "none",
            "loss.reconstruction": 0.0,
            "optim.learning_rate": 1e-3,
            "optim.decay": 0.95,
            "epochs": 20,
            **changes,
        },
    )


def _settings() -> Iterator[Setting]:
    for routing, values in _ROUTINGS.items():
        for variant, gradient in ((_ALL, "full"), (_LAST, "last")):
            changes = {"model.routing": {**values, "gradient": gradient}}
            yield _setting(routing, variant, changes)
            if routing in _BY_DISTANCE:
                yield _setting(routing, f"{variant}, {_WIDE}", {**changes, "model.init_std": 1.0})


register(
    on_mnist5k(
        label=LABEL,
        title="A small gamma-CapsNet with gradients through all rounds of routing, and through the last",
        metrics=("test_accuracy", "test_loss"),
        budgets={"smoke": SMOKE},
        settings=tuple(_settings()),
        claims=(
            our_claim(
                "Scaled-distance routing learns less when its couplings are held constant: the loss on "
                "test digits is higher.",
                larger(
                    LABEL,
                    "test_loss",
                    [(f"{routing}, {_LAST}", f"{routing}, {_ALL}") for routing in _BY_DISTANCE],
                ),
            ),
            our_claim(
                "With constant couplings it learns less from matrices that start with a deviation of 0.1 "
                "than from such of 1: the loss on test digits is higher.",
                larger(
                    LABEL,
                    "test_loss",
                    [(f"{routing}, {_LAST}", f"{routing}, {_LAST}, {_WIDE}") for routing in _BY_DISTANCE],
                ),
            ),
        ),
        deviations=(
            "Not in the thesis, whose code holds the couplings of both routings constant. The network is "
            "small and has no decoder; its first learning rate and its loss are the thesis's. Matrices start "
            "with a deviation of 0.1 where a setting does not say 1.",
        ),
    )
)
