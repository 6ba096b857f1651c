"""Beyond chapter 6: the entropy of couplings as an objective, and stronger pruning, against REM."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from torchcaps.viz import EntropyDot, draw_accuracy_entropy, to_png, with_deviation

from ...plan import BEYOND, SMOKE, Changes, Experiment, our_claim, register, take_over
from ...records import Rows, by_setting
from ..reuse import reused, varied
from ..setting import TreeSetting
from ..tables import DEVIATIONS, METRICS, MNIST_TABLE, NO_DECODER, study_trees
from . import claims

_TABLES = (MNIST_TABLE,)
_WEIGHTS = (0.1, 0.2, 0.15, 0.03)
_STRENGTHS = (1e-3, 2e-3, 5e-3)
_BOTH = {  # weight and strength
    "DR-CapsNet": ((0.03, 1e-3), (0.03, 2e-3)),
    "Efficient-CapsNet": ((0.03, 1e-3), (0.1, 2e-3)),
}
_LEARNING: dict[str, Changes] = {  # changes that let couplings learn
    "DR-CapsNet": {"model.routing.gradient": "full"},
    "Efficient-CapsNet": {},
}
_THESIS = {"DR-CapsNet": (4.16, 99.56), "Efficient-CapsNet": (2.60, 99.58)}  # entropy, accuracy


class _Way(NamedTuple):
    """A way of training: a weight of the entropy in the loss, a pruning strength, both or neither.

    `is_rem` is pruning with the strength of the table.
    """

    weight: float | None = None
    strength: float | None = None
    is_rem: bool = False

    @property
    def name(self) -> str:
        """As a variant of a network."""
        entropy = "" if self.weight is None else f"entropy {self.weight}"
        pruning = "pruning" if self.is_rem else "" if self.strength is None else f"pruning {self.strength}"
        return " and ".join(part for part in (entropy, pruning) if part) or "plain"

    @property
    def method(self) -> str:
        """What is drawn in one colour."""
        if self.weight is not None:
            return "entropy" if self.strength is None else "both"
        return "pruning" if self.is_rem or self.strength is not None else "plain"

    @property
    def numbers(self) -> str:
        """The words beside its point."""
        return " + ".join(str(number) for number in (self.weight, self.strength) if number is not None)


def _ways(network: str) -> dict[str, _Way]:
    """Every way of training a network, by its name."""
    ways = (
        _Way(),
        *(_Way(weight=weight) for weight in _WEIGHTS),
        _Way(is_rem=True),
        *(_Way(strength=strength) for strength in _STRENGTHS),
        *(_Way(weight=weight, strength=strength) for weight, strength in _BOTH[network]),
    )
    return {way.name: way for way in ways}


def _setting(network: str, way: _Way, learning: Changes) -> TreeSetting:
    """A network trained in one way; `learning` lets its couplings learn."""
    is_pruned = way.is_rem or way.strength is not None
    of, name = f"{network}{'+REM' if is_pruned else '+Q'}", f"{network}, {way.name}"
    changes: dict[str, object] = {}
    if way.weight is not None:
        changes |= {**learning, "loss.coupling_entropy": way.weight}
    if way.strength is not None:
        changes |= {"pruning.strength": way.strength, "pruning.tolerance": 0.02}
    setting = varied(_TABLES, of, name, changes) if changes else replace(reused(_TABLES, of), name=name)
    return replace(setting, variant=way.name)


def draw_networks(rows: Rows) -> bytes:
    """Accuracy against entropy, a chart for each network."""
    accuracies, entropies = by_setting(rows, "quantized_accuracy"), by_setting(rows, "entropy")
    decided = by_setting(rows, "decided")
    charts: dict[str, dict[str, list[EntropyDot]]] = {}
    for name, accuracy in accuracies.items():
        way = _ways(accuracy.network)[accuracy.variant]
        measured = with_deviation(accuracy.ours, accuracy.spread, way.numbers, most=100)
        is_undecided = name in decided and decided[name].ours < 1  # older results of the table do not tell
        dot = EntropyDot(entropies[name].ours, measured, is_undecided=is_undecided)
        charts.setdefault(accuracy.network, {}).setdefault(way.method, []).append(dot)
    return to_png(draw_accuracy_entropy(charts, _THESIS))


ENTROPY_TABLE = register(
    Experiment(
        label="beyond:coupling-entropy",
        chapter=BEYOND,
        title="Accuracy against parse-tree entropy on MNIST: stronger pruning, and entropy as an objective",
        data=("mnist",),
        gpu_minutes=4000,
        metrics=(*METRICS, "decided"),
        budgets={"smoke": SMOKE},
        perform=take_over(_TABLES, study_trees),
        settings=tuple(
            _setting(network, way, learning)
            for network, learning in _LEARNING.items()
            for way in _ways(network).values()
        ),
        draw=draw_networks,
        claims=tuple(
            our_claim(
                f"{network} keeps 99.5 % with less than half of the entropy that the thesis has with REM.",
                claims.half_the_entropy(network, entropy),
            )
            for network, (entropy, _) in _THESIS.items()
        ),
        deviations=(
            f"Plain and pruning without a number are the runs of {MNIST_TABLE.label}.",
            "The number after entropy is the weight of the differentiable entropy of couplings in the loss; "
            "gradients then flow through all rounds of dynamic routing. The number after pruning is its "
            "strength; its threshold may raise the validation loss by 2 %.",
            "Decided children are those of an image whose coupling to its class is not rounded to an equal "
            "share. Where there is less than 1, the entropy is low because routing no longer decides "
            "anything: the figure draws such networks hollow.",
            NO_DECODER,
            *DEVIATIONS,
        ),
    )
)
