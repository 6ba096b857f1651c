"""Beyond chapter 6: what `torchcaps demo` shows of routing and REM, over seeds.

The demonstration is one pair of short runs, whose trees depend much on chance.
"""

from __future__ import annotations

from ...plan import SMOKE, larger, larger_metric, on_mnist5k, our_claim, register
from ..setting import PLAIN, REM, TreeSetting
from ..tables import METRICS, study_trees

LABEL = "beyond:demo"
_NETWORK = "gamma-CapsNet small"
_WHOLE, _PRUNED = "as trained", "with REM"
_LEVELS = (17, 11)  # an equal share, of 16 parents or of 10 classes, is a level, as in the demonstration


def _setting(name: str, variant: str, recipe: str) -> TreeSetting:
    return TreeSetting(name=name, network=_NETWORK, variant=variant, recipe=recipe, levels=_LEVELS)


register(
    on_mnist5k(
        label=LABEL,
        title="The networks of the demonstration: accuracy, with and without routing, and parse trees",
        seeds=10,
        metrics=(*METRICS[:1], "accuracy_with_even", *METRICS[1:]),
        budgets={
            "smoke": {
                **SMOKE,
                "loss.reconstruction": 0.0,
                "model": {
                    "name": "gamma_capsnet_mnist",
                    "stem_channels": 4,
                    "primary_types": 1,
                    "hidden_caps": 16,
                    "decoder": "none",
                },
            }
        },
        perform=study_trees,
        settings=(
            _setting(_WHOLE, PLAIN, "mnist5k/gamma_capsnet_small"),
            _setting(_PRUNED, REM, "mnist5k/gamma_capsnet_small_rem"),
        ),
        claims=(
            our_claim(
                "Routing decides: with even couplings the network of the demonstration is less accurate.",
                larger_metric(LABEL, "test_accuracy", "accuracy_with_even", [_WHOLE]),
            ),
            our_claim(
                "With REM it needs fewer parse trees: their entropy is lower.",
                larger(LABEL, "entropy", [(_WHOLE, _PRUNED)]),
            ),
        ),
        deviations=(
            "Not in the thesis. A small gamma-CapsNet with decoder, 3,800 digits, 7 epochs, "
            "1,000 test images.",
        ),
    )
)
