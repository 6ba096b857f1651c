"""Chapter 4, routing annealing: fixed against annealed iterations."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from ..plan import Changes, Claim, Experiment, Setting, our_claim, register
from ..records import RunResult
from . import curve_claims, grid_claims
from .figure import draw_fixed_and_annealed, draw_grid
from .names import ANNEALED, FIXED, GRID, WAYS, fixed_name, full_name, grid_name, size_name

CHAPTER = "Capsule networks with routing annealing"
_MINIMAL = "mnist/dr_capsnet_minimal"
_AT_ONCE = 6  # small networks on one GPU
SMOKE: Changes = {
    "data.limit": 200,
    "data.validation": 0.2,
    "batch_size": 32,
    "epochs": 2,
    "model.stem_channels": 16,  # most of the time goes into the stem
}
_QUICK_MNIST: Changes = {"patience": 5, "epochs": 40}
_DEVIATIONS = (
    "The thesis prints no numbers for its figures, only curves and bars; the claims are those of its text.",
    "Adam's moments are reset when weights are restored; the thesis does not say what it does.",
    "Restored weights are validated with the new number of iterations before they learn, and may win so; the "
    "thesis's algorithm first trains them for an epoch.",
    "Class capsules have a learned bias, as in the thesis's code and unlike in its algorithm. Unless a "
    "setting says otherwise it learns through the last round alone, as votes do; in that code through all.",
)


def _fixed(iterations: int, gradient: str = "last") -> Changes:
    return {
        "model.routing": {"name": "dynamic", "gradient": gradient, "iterations": iterations},
        "patience": 10,
        "epochs": 1000,
    }


def _annealing(r_max: int, patience: int) -> Changes:
    return {"annealing": {"r0": 1, "r_max": r_max, "step": 1, "patience": patience}}


_ANNEALED: Changes = {
    "model.routing": {"name": "dynamic", "gradient": "last"},
    "patience": 0,
    **_annealing(50, 10),
    "epochs": 3000,
}


def steps_of_run(result: RunResult, metric: str) -> Mapping[int, float]:
    """A metric on the test images by the number of iterations of each annealing step."""
    if not metric.startswith("test_"):
        return {}
    return {int(step["iterations"]): step[metric] for step in result.annealing}


def _grid(data: Changes) -> tuple[Setting, ...]:
    """The three ways of training of each size, one size after the other."""
    changes = {"fixed 1": _fixed(1), "fixed 3": _fixed(3), "annealed": _ANNEALED}
    quick: dict[str, Changes] = {
        "fixed 1": {"patience": 5, "epochs": 80},
        "fixed 3": {"patience": 5, "epochs": 80},
        "annealed": {**_annealing(10, 3), "epochs": 80},
    }
    return tuple(
        Setting(
            name=grid_name(types, poses, way),
            network=size_name(types, poses),
            variant=way,
            recipe=_MINIMAL,
            changes={
                **data,
                "model.primary_types": types,
                "model.primary_pose": poses[0],
                "model.class_pose": poses[1],
                **changes[way],
            },
            budgets={"quick": quick[way]},
        )
        for types, poses in GRID
        for way in WAYS
    )


def _grid_claims(label: str) -> tuple[Claim, ...]:
    return (
        Claim(
            "Annealing is more accurate than one and three iterations in all settings.",
            grid_claims.wins(label),
        ),
        Claim("Gains are largest for networks of few parameters.", grid_claims.gains_shrink(label)),
        Claim("Annealing finds fewer iterations as the network grows.", grid_claims.iterations_shrink(label)),
        Claim(
            "With fixed iterations, one is better than three for 8D and 16D capsules.",
            grid_claims.one_beats_three(label),
        ),
    )


register(
    Experiment(
        label="fig:fix_vs_ann",
        chapter=CHAPTER,
        title="Loss and accuracy against the number of iterations, fixed and annealed, on MNIST",
        data=("mnist",),
        gpu_minutes=200,
        at_once=_AT_ONCE,
        metrics=("test_accuracy", "test_loss", "iterations"),
        budgets={"smoke": SMOKE},
        settings=(
            Setting(  # the longest run, so it starts first
                name=ANNEALED,
                recipe=_MINIMAL,
                changes=_ANNEALED,
                budgets={"quick": {**_annealing(50, 2), "epochs": 400}},
            ),
            *(
                Setting(name=name, recipe=_MINIMAL, changes=changes, budgets={"quick": _QUICK_MNIST})
                for name, changes in (
                    *((fixed_name(r), _fixed(r)) for r in FIXED),
                    *((full_name(r), _fixed(r, "full")) for r in (10, 50)),
                )
            ),
        ),
        draw=draw_fixed_and_annealed,
        curve=steps_of_run,
        claims=(
            Claim(
                "With annealing the loss falls as iterations are added.",
                partial(curve_claims.annealed_ends_better, "test_loss"),
            ),
            Claim(
                "With annealing the accuracy rises as iterations are added.",
                partial(curve_claims.annealed_ends_better, "test_accuracy"),
            ),
            Claim("With fixed iterations the loss grows with their number.", curve_claims.fixed_loss_grows),
            Claim(
                "At equal iterations annealed training is more accurate than fixed.",
                partial(curve_claims.annealed_is_better, "test_accuracy"),
            ),
            Claim(
                "At equal iterations annealed training reaches a lower loss than fixed.",
                partial(curve_claims.annealed_is_better, "test_loss"),
            ),
            our_claim(
                "Beyond the thesis: fixed training suffers from many iterations when gradients flow through "
                "all rounds instead of through the last.",
                curve_claims.full_gradient_is_worse,
            ),
        ),
        deviations=(
            *_DEVIATIONS,
            f"Fixed training is made for {len(FIXED)} numbers of iterations, in the thesis for every one.",
        ),
    )
)
_on_grid = partial(
    Experiment,
    chapter=CHAPTER,
    gpu_minutes=1500,
    at_once=_AT_ONCE,
    metrics=("test_accuracy", "iterations"),
    budgets={"smoke": SMOKE},
    draw=draw_grid,
    deviations=_DEVIATIONS,
)
register(
    _on_grid(
        label="fig:fashion",
        title="Accuracy on Fashion-MNIST over capsule types and dimensions",
        data=("fashion_mnist",),
        settings=_grid({"data.name": "fashion_mnist"}),
        claims=(
            *_grid_claims("fig:fashion"),
            Claim(
                "Annealing finds three iterations for the largest network, 32 types of 8D and 16D.",
                grid_claims.largest_finds_three,
            ),
        ),
    )
)
register(
    _on_grid(
        label="fig:cifar10",
        title="Accuracy on CIFAR-10 over capsule types and dimensions",
        data=("cifar10",),
        settings=_grid(
            {
                "data": {"name": "cifar10", "preprocess": {"center_crop": 24}, "augment": {"crop": 24}},
                "model.in_channels": 3,
                "model.image_size": 24,
            }
        ),
        claims=(
            *_grid_claims("fig:cifar10"),
            Claim(
                "For the same network, annealing finds another number of iterations than on Fashion-MNIST.",
                grid_claims.datasets_differ,
            ),
        ),
    )
)
