"""Which rounds of routing the gradient flows through, and what a small gamma-CapsNet learns then.

This is not an experiment of the thesis. Its code holds the couplings of scaled-distance routing constant.
"""

from __future__ import annotations

from .plan import SMOKE, Setting, larger, on_mnist5k, our_claim, register

LABEL = "beyond:distance-gradient"
_ROUTINGS = {
    "scaled distance, mean over a sample": {"name": "scaled_distance", "scope": "sample"},
    "scaled distance, mean over the batch": {"name": "scaled_distance", "scope": "batch"},
    "dynamic": {"name": "dynamic"},
}
_ALL, _LAST = "gradient through all rounds", "through the last"


def _settings() -> tuple[Setting, ...]:
    return tuple(
        Setting(
            name=f"{routing}, {variant}",
            recipe="mnist5k/gamma_capsnet_small",
            network=routing,
            variant=variant,
            changes={
                "model.decoder": "none",
                "model.routing": {**values, "gradient": gradient},
                "loss.reconstruction": 0.0,
                "optim.learning_rate": 1e-3,
                "optim.decay": 0.95,
                "epochs": 20,
            },
        )
        for routing, values in _ROUTINGS.items()
        for variant, gradient in ((_ALL, "full"), (_LAST, "last"))
    )


register(
    on_mnist5k(
        label=LABEL,
        title="A small gamma-CapsNet with gradients through all rounds of routing, and through the last",
        metrics=("test_accuracy", "test_loss"),
        budgets={"smoke": SMOKE},
        settings=_settings(),
        claims=(
            our_claim(
                "Scaled-distance routing learns less when its couplings are held constant: the loss on "
                "test digits is higher.",
                larger(
                    LABEL,
                    "test_loss",
                    [(f"{routing}, {_LAST}", f"{routing}, {_ALL}") for routing in list(_ROUTINGS)[:2]],
                ),
            ),
        ),
        deviations=(
            "Not in the thesis, whose code holds the couplings of both routings constant. The network is "
            "small and has no decoder; its first learning rate and its loss are the thesis's.",
        ),
    )
)
