"""Whether routing decides in networks that learnt from few photographs.

This is not an experiment of the thesis. A parse tree means something only where routing decides.
"""

from __future__ import annotations

from .our_data import REDUCED_IMAGENETTE
from .plan import (
    BEYOND,
    Case,
    Experiment,
    Finding,
    RowsOf,
    decide_together,
    difference,
    larger_metric,
    mean_of,
    our_claim,
    register,
)
from .records import by_setting
from .rem.setting import TreeSetting
from .rem.tables import study_trees

LABEL = "beyond:photographs"
_IMAGES = 1000  # a hundred of each class
_KEPT = 2.0  # points of accuracy
_ATTENTION, _SELF_ROUTING = "self-attention", "self-routing"
_RECIPES = {
    _ATTENTION: "photos/efficient_capsnet",
    _SELF_ROUTING: "photos/efficient_capsnet_self_routing",
}


def keeps_accuracy(rows_of: RowsOf) -> Finding:
    """Self-routing is as accurate as self-attention, within two points."""
    rows = by_setting(rows_of(LABEL), "test_accuracy")
    if not _RECIPES.keys() <= rows.keys():
        return Finding("open", "one of the two has not been trained")
    plain, found = (mean_of(rows[name]) for name in _RECIPES)
    because = f"{found.value:.2f} % with {_SELF_ROUTING}, {plain.value:.2f} % with {_ATTENTION}"
    return decide_together({_SELF_ROUTING: Case(difference(found, plain), -_KEPT)}, 1, because)


register(
    Experiment(
        label=LABEL,
        chapter=BEYOND,
        title="A network for photographs of one's own: accuracy, and accuracy with even couplings",
        data=("imagenette",),
        gpu_minutes=2,
        seeds=3,
        metrics=("test_accuracy", "accuracy_with_even", "quantized_accuracy", "keys"),
        perform=study_trees,
        settings=tuple(
            TreeSetting(name=name, recipe=recipe, changes={"data.limit": _IMAGES})
            for name, recipe in _RECIPES.items()
        ),
        budgets={"smoke": {"data.limit": 100, "batch_size": 16, "epochs": 1}},
        claims=(
            our_claim(
                "With self-routing the couplings decide: with even ones the network is at least ten points "
                "less accurate.",
                larger_metric(LABEL, "test_accuracy", "accuracy_with_even", [_SELF_ROUTING], by=10.0),
            ),
            our_claim(
                "It is as accurate as with self-attention, by our rule within two points.", keeps_accuracy
            ),
        ),
        deviations=(
            f"Not in the thesis. {_IMAGES:,} training images of Imagenette stand for photographs of one's "
            "own; all of its test images are read.",
            REDUCED_IMAGENETTE,
        ),
    )
)
