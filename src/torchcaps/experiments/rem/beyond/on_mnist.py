"""Beyond chapter 6: small networks for all of MNIST, one whose trees can be read and one of few capsules."""

from __future__ import annotations

from collections.abc import Iterable

from ...plan import (
    BEYOND,
    SMOKE,
    Case,
    Changes,
    Experiment,
    Finding,
    Mean,
    RowsOf,
    decide_together,
    difference,
    excess,
    mean_of,
    our_claim,
    register,
)
from ...records import by_setting_and_metric
from ..setting import PLAIN, REM, TreeSetting
from ..tables import METRICS
from .groups import prune_and_shrink

LABEL = "beyond:rem-mnist"
_GAMMA, _DR = "gamma-CapsNet, small", "DR-CapsNet"
_RECIPES = {_GAMMA: "mnist/gamma_capsnet_small_pruned", _DR: "mnist/dr_capsnet_types"}
# an equal share, of 16 hidden capsules or of 10 classes, is a level
_LEVELS: dict[str, int | tuple[int, ...]] = {_GAMMA: (17, 11), _DR: 11}
_FEW = {"stem_channels": 8, "primary_types": 4}
_TINY: dict[str, Changes] = {
    _GAMMA: {
        "model": {"name": "gamma_capsnet_mnist", "hidden_caps": 16, **_FEW},
        "loss": {"reconstruction": 0.0},
    },
    _DR: {"model": {"name": "dr_capsnet_mnist", **_FEW}},
}
_KEPT = 0.5  # points of accuracy
_HALF = 50  # percent: of the operations, and of the digits that even couplings may read
_MISSING = Finding("open", "the network has not been trained both ways")


def _means(rows_of: RowsOf, network: str, metrics: Iterable[str]) -> dict[str, dict[str, Mean]] | None:
    """The metrics of a network by variant, where both have been trained."""
    found = by_setting_and_metric(row for row in rows_of(LABEL) if row.network == network)
    means = {
        variant: {metric: mean_of(found[name][metric]) for metric in metrics if metric in found[name]}
        for variant in (PLAIN, REM)
        if (name := f"{network}, {variant}") in found
    }
    return means if len(means) == len((PLAIN, REM)) else None


def _at_kept_accuracy(means: dict[str, dict[str, Mean]], name: str, case: Case, words: str) -> Finding:
    """Decide that a case holds, at an accuracy that is kept."""
    plain, rem = (means[variant]["test_accuracy"] for variant in (PLAIN, REM))
    cases = {name: case, "the accuracy": Case(difference(rem, plain), -_KEPT)}
    return decide_together(cases, len(cases), f"{words}, {plain.value:.2f} to {rem.value:.2f} %")


def fewer_trees(rows_of: RowsOf) -> Finding:
    """Fewer trees with REM, at an accuracy that is kept."""
    means = _means(rows_of, _GAMMA, ("keys", "test_accuracy"))
    if means is None:
        return _MISSING
    plain, rem = (means[variant]["keys"] for variant in (PLAIN, REM))
    words = f"{plain.value:,.0f} to {rem.value:,.0f} trees"
    return _at_kept_accuracy(means, "the trees", Case(difference(plain, rem)), words)


def fewer_operations(rows_of: RowsOf) -> Finding:
    """Half of the operations or fewer with whole types cut, at an accuracy that is kept."""
    means = _means(rows_of, _DR, ("operations_share", "test_accuracy"))
    if means is None:
        return _MISSING
    share = means[REM]["operations_share"]
    case = Case(excess(share.times(-1), -_HALF))
    return _at_kept_accuracy(means, "the operations", case, f"{share.value:.1f} % of the operations")


def routing_decides(rows_of: RowsOf) -> Finding:
    """With each vote split evenly the network reads fewer than half of the digits, with REM and without."""
    means = _means(rows_of, _GAMMA, ("accuracy_with_even",))
    if means is None:
        return _MISSING
    even = {variant: metrics["accuracy_with_even"] for variant, metrics in means.items()}
    cases = {variant: Case(excess(mean.times(-1), -_HALF)) for variant, mean in even.items()}
    because = ", ".join(f"{variant} {mean.value:.1f} %" for variant, mean in even.items())
    return decide_together(cases, len(cases), because)


def _settings() -> tuple[TreeSetting, ...]:
    changed: dict[str, Changes] = {PLAIN: {"pruning": None}, REM: {}}
    return tuple(
        TreeSetting(
            name=f"{network}, {variant}",
            network=network,
            variant=variant,
            recipe=recipe,
            changes=changes,
            levels=_LEVELS[network],
            budgets={"smoke": {**SMOKE, **_TINY[network]}},
        )
        for network, recipe in _RECIPES.items()
        for variant, changes in changed.items()
    )


register(
    Experiment(
        label=LABEL,
        chapter=BEYOND,
        title="Small networks for all of MNIST: one whose trees are few, one whose capsules are cut by types",
        data=("mnist",),
        gpu_minutes=15,
        seeds=3,
        metrics=(*METRICS, "accuracy_with_even", "parameters_share", "operations_share"),
        perform=prune_and_shrink,
        settings=_settings(),
        claims=(
            our_claim(
                "With REM a small gamma-CapsNet has fewer parse trees, at an accuracy within half a point.",
                fewer_trees,
            ),
            our_claim(
                "Its routing decides: with even couplings it reads fewer than half of the digits.",
                routing_decides,
            ),
            our_claim(
                "Cut by types, DR-CapsNet has less than half of its operations, at an accuracy within half a "
                "point.",
                fewer_operations,
            ),
        ),
        deviations=(
            "Not in the thesis. The small gamma-CapsNet has 8 types of primary capsules, 16 hidden capsules "
            "and a decoder, and single weights are cut; DR-CapsNet is whole, and types are cut.",
            "Digits are shifted, turned and scaled in training, for photographs of other people's.",
            "The parameters share and the operations share compare the network without its zeros "
            "(`torchcaps shrink`) with the whole one; both give the same answers.",
        ),
    )
)
