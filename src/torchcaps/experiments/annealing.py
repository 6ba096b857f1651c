"""Chapter 4, routing annealing: fixed against annealed iterations."""

from __future__ import annotations

from .plan import Experiment, Setting, register

_CHAPTER = "Capsule networks with routing annealing"
_ANNEALED = "annealing={r0: 1, r_max: 50, step: 1, patience: 10}"
_BUDGETS = {
    "smoke": ("data.limit=200", "data.validation=0.2", "batch_size=32", "epochs=2"),
    "quick": ("epochs=60",),
}


def _fixed(iterations: int) -> tuple[str, ...]:
    return (
        f"model.routing={{name: dynamic, gradient: last, iterations: {iterations}}}",
        "patience=10",
        "epochs=1000",
    )


def _annealed() -> tuple[str, ...]:
    return ("model.routing={name: dynamic, gradient: last}", "patience=0", _ANNEALED, "epochs=3000")


def _grid(data: tuple[str, ...]) -> tuple[Setting, ...]:
    ways = {"fixed 1": _fixed(1), "fixed 3": _fixed(3), "annealed": _annealed()}
    sizes = [(types, poses) for types in (1, 2, 4, 8, 16, 32) for poses in ((2, 4), (4, 8), (8, 16))]
    return tuple(
        Setting(
            name=f"{types} types, {primary}D and {of_class}D, {way}",
            recipe="mnist/dr_capsnet_minimal",
            changes=(
                *data,
                f"model.primary_types={types}",
                f"model.primary_pose={primary}",
                f"model.class_pose={of_class}",
                *changes,
            ),
        )
        for types, (primary, of_class) in sizes
        for way, changes in ways.items()
    )


register(
    Experiment(
        label="fig:fix_vs_ann",
        chapter=_CHAPTER,
        title="Loss and accuracy against the number of iterations, fixed and annealed, on MNIST",
        data=("mnist",),
        gpu_minutes=200,
        metrics=("test_accuracy", "test_loss", "iterations"),
        budgets=_BUDGETS,
        settings=(
            *(
                Setting(name=f"fixed {r}", recipe="mnist/dr_capsnet_minimal", changes=_fixed(r))
                for r in (1, 2, 3, 5, 10, 20, 50)
            ),
            Setting(name="annealed to 50", recipe="mnist/dr_capsnet_minimal", changes=_annealed()),
        ),
    )
)
register(
    Experiment(
        label="fig:fashion",
        chapter=_CHAPTER,
        title="Accuracy on Fashion-MNIST over capsule types and dimensions",
        data=("fashion_mnist",),
        gpu_minutes=1500,
        metrics=("test_accuracy", "iterations"),
        budgets=_BUDGETS,
        settings=_grid(("data.name=fashion_mnist",)),
    )
)
register(
    Experiment(
        label="fig:cifar10",
        chapter=_CHAPTER,
        title="Accuracy on CIFAR-10 over capsule types and dimensions",
        data=("cifar10",),
        gpu_minutes=1500,
        metrics=("test_accuracy", "iterations"),
        budgets=_BUDGETS,
        settings=_grid(
            (
                "data={name: cifar10, preprocess: {center_crop: 24}, augment: {crop: 24}}",
                "model.in_channels=3",
                "model.image_size=24",
            )
        ),
    )
)
