"""Beyond chapter 6: the entropy of couplings as an objective, and a stronger pull, against REM as it is."""

from __future__ import annotations

from pathlib import Path

from torchcaps.viz import to_png
from torchcaps.viz.front import Point, draw_front

from ..plan import Claim, Experiment, Rows, Setting, register
from . import claims
from .reuse import TakeOver, again, vary
from .tables import DEVIATIONS, METRICS, MNIST_TABLE, NO_DECODER, SMOKE, study_trees

BEYOND = "beyond the thesis"
_TABLES = (MNIST_TABLE,)
_WEIGHTS = (0.1, 0.2, 0.15, 0.03)  # 0.03, 0.1 and 0.3 on mnist5k: 5.8, 3.0 and 0.6 bits, 6.4 without
_STRENGTHS = (1e-3, 2e-3, 5e-3)
# Weight and strength. On mnist5k DR-CapsNet with 0.1 and a strong pull is left with empty trees (0.6 children
# decided); Efficient-CapsNet with 0.1 has 2.1 bits and 3.1 of its 16 children decided.
_BOTH = {
    "DR-CapsNet": ((0.03, 1e-3), (0.03, 2e-3)),
    "Efficient-CapsNet": ((0.03, 1e-3), (0.1, 2e-3)),
}
_THESIS = {"DR-CapsNet": (4.16, 99.56), "Efficient-CapsNet": (2.60, 99.58)}  # entropy, accuracy


def _settings(network: str, changes: tuple[str, ...]) -> tuple[Setting, ...]:
    """One network in every way; `changes` lets its couplings learn."""

    def entropy(weight: float) -> tuple[str, ...]:
        return (*changes, f"loss.coupling_entropy={weight}")

    def pull(strength: float) -> tuple[str, ...]:
        return f"pruning.strength={strength}", "pruning.tolerance=0.02"

    plain, rem = f"{network}+Q", f"{network}+REM"
    return (
        again(_TABLES, plain, name=f"{network}, plain"),
        *(vary(_TABLES, plain, f"{network}, entropy {weight}", entropy(weight)) for weight in _WEIGHTS),
        again(_TABLES, rem, name=f"{network}, pruning"),
        *(vary(_TABLES, rem, f"{network}, pruning {pulled}", pull(pulled)) for pulled in _STRENGTHS),
        *(
            vary(
                _TABLES,
                rem,
                f"{network}, entropy {weight} and pruning {pulled}",
                (*entropy(weight), *pull(pulled)),
            )
            for weight, pulled in _BOTH[network]
        ),
    )


def _method(words: str) -> tuple[str, str]:
    """The method that a setting belongs to, and its numbers."""
    numbers = [word for word in words.split() if word[0].isdigit()]
    return "both" if " and " in words else words.split()[0], " + ".join(numbers)


def draw_fronts(rows: Rows, path: Path) -> None:
    """Accuracy against entropy, a chart for each network."""
    found = {(row["setting"], row["metric"]): row for row in rows}
    panels: dict[str, list[Point]] = {}
    for setting in dict.fromkeys(row["setting"] for row in rows):
        network, _, words = setting.partition(", ")
        accuracy, entropy = found[setting, "quantized_accuracy"], found[setting, "entropy"]
        decided = found.get((setting, "decided"), {"ours": 1.0})  # older results of the table do not tell
        method, numbers = _method(words)
        values = entropy["ours"], accuracy["ours"], accuracy["spread"]
        point = Point(numbers, method, *values, is_empty=decided["ours"] < 1)
        panels.setdefault(network, []).append(point)
    path.write_bytes(to_png(draw_front(panels, _THESIS)))


ENTROPY_TABLE = register(
    Experiment(
        label="beyond:coupling-entropy",
        chapter=BEYOND,
        title="Accuracy against parse-tree entropy on MNIST: a stronger pull, and entropy as an objective",
        data=("mnist",),
        gpu_minutes=4000,
        metrics=(*METRICS, "decided"),
        budgets={"smoke": SMOKE},
        perform=TakeOver(_TABLES, study_trees),
        settings=(
            *_settings("DR-CapsNet", ("model.routing.gradient=full",)),
            *_settings("Efficient-CapsNet", ()),
        ),
        draw=draw_fronts,
        claims=tuple(
            Claim(
                f"{network} keeps 99.5 % with less than half of the entropy that the thesis has with REM.",
                claims.half_the_entropy(network, entropy),
            )
            for network, (entropy, _) in _THESIS.items()
        ),
        deviations=(
            f"Plain and pruning without a number are the runs of {MNIST_TABLE.label}.",
            "Entropy is the weight of the differentiable entropy of couplings in the loss; gradients then "
            "flow through all rounds of dynamic routing; pruning is the strength of the pull, with a "
            "threshold that may raise the validation loss by 2 %.",
            "Decided counts the children of an image whose coupling to its class is not rounded to an equal "
            "share. Where it is below 1 the entropy is low because routing no longer decides anything: the "
            "figure draws such networks hollow.",
            NO_DECODER,
            *DEVIATIONS,
        ),
    )
)
