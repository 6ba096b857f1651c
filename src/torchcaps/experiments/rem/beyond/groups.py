"""Beyond chapter 6: pruning of single weights, capsules or capsule types, and what shrinking then saves."""

from __future__ import annotations

from collections.abc import Collection

from torchcaps.prune import measure_size, shrink

from ...plan import (
    SMOKE,
    Case,
    Changes,
    Finding,
    Job,
    Mean,
    RowsOf,
    decide_best,
    decide_together,
    difference,
    excess,
    mean_of,
    on_mnist5k,
    our_claim,
    register,
)
from ...records import by_setting_and_metric
from ..setting import TreeSetting
from ..tables import METRICS, train_and_count

LABEL = "beyond:pruned-groups"
_NETWORK = "DR-CapsNet small"
_RECIPE = "mnist5k/dr_capsnet_small_rem"
_WHOLE, _WEIGHTS = "as trained", "single weights"
_CUT = {"capsules": "capsule", "capsule types": "type"}
_GROUPS = {_WEIGHTS: "weight", **_CUT}
_TOLERANCES = (0.05, 0.5, 1.0)
_KEPT = 0.5  # points of accuracy
TINY: Changes = {
    **SMOKE,
    "model": {"name": "dr_capsnet_tiny_test", "image_size": 28, "num_classes": 10, "decoder": "none"},
}


def prune_and_shrink(job: Job) -> None:
    """Train with pruning, count the trees, and measure what is left of the network without its zeros."""
    trained, outcome = train_and_count(job)
    left, whole = measure_size(shrink(trained.model)), measure_size(trained.model)
    sizes = {
        "parameters_shrunk": left.parameters,
        "parameters_share": left.parameters / whole.parameters,
        "operations_share": left.flops / whole.flops,
    }
    job.leave_result(outcome.with_metrics(sizes))


def _means(rows_of: RowsOf, variants: Collection[str]) -> dict[str, dict[str, Mean]]:
    """The metrics of each setting of some variants, by its name."""
    found = by_setting_and_metric(row for row in rows_of(LABEL) if row.variant in variants)
    return {
        name: {metric: mean_of(row) for metric, row in metrics.items()} for name, metrics in found.items()
    }


def groups_shrink(rows_of: RowsOf) -> Finding:
    """Some network cut by capsules or types has half of the operations at an accuracy within half a point."""
    whole, cut = _means(rows_of, (_WHOLE,)).get(_WHOLE), _means(rows_of, _CUT)
    if whole is None or not cut:
        return Finding("open", "the network without pruning, or every one with it, has not been trained")
    least = whole["test_accuracy"].value - _KEPT
    ranked = sorted(
        cut, key=lambda name: (cut[name]["test_accuracy"].value < least, cut[name]["operations_share"].value)
    )
    planned = sum(setting.variant in _CUT for setting in _settings())
    cases = max(planned, len(cut))
    findings = [_shrinks(name, cut[name], whole["test_accuracy"], cases) for name in ranked]
    return decide_best(findings, planned - len(cut))


def _shrinks(name: str, metrics: dict[str, Mean], whole: Mean, cases: int) -> Finding:
    """Whether one of several pruned networks has half of the operations, and loses less than half a point."""
    share, accuracy = metrics["operations_share"], metrics["test_accuracy"]
    because = (
        f"{share.value:.1f} % of the operations at {accuracy.value:.2f} % ({name}), as trained "
        f"{whole.value:.2f} %"
    )
    conditions = {
        "the operations": Case(excess(share.times(-1), -50, cases=cases)),
        "the accuracy": Case(difference(accuracy, whole, cases=cases), -_KEPT),
    }
    return decide_together(conditions, len(conditions), because)


def weights_stay(rows_of: RowsOf) -> Finding:
    """Wherever half of the single weights are zero, nine tenths of the parameters cannot be left out."""
    found = _means(rows_of, (_WEIGHTS,))
    pruned = {name: metrics for name, metrics in found.items() if metrics["sparsity"].value >= 50}
    if not pruned:
        return Finding("open", "no network has lost half of its single weights")
    shares = {name: metrics["parameters_share"] for name, metrics in pruned.items()}
    least = min(shares, key=lambda name: shares[name].value)
    because = (
        f"{shares[least].value:.1f} % of the parameters stay where {pruned[least]['sparsity'].value:.1f} % "
        f"are zero ({least})"
    )
    missing = sum(setting.variant == _WEIGHTS for setting in _settings()) - len(found)
    cases = {name: Case(excess(share, 90)) for name, share in shares.items()}
    return decide_together(cases, len(cases) + max(missing, 0), because)


def _setting(name: str, variant: str, changes: Changes) -> TreeSetting:
    return TreeSetting(name=name, network=_NETWORK, variant=variant, recipe=_RECIPE, changes=changes)


def _settings() -> tuple[TreeSetting, ...]:
    return (
        _setting(_WHOLE, _WHOLE, {"pruning": None}),
        *(
            _setting(
                f"{words}, tolerance {tolerance:g}",
                words,
                {"pruning.group": group, "pruning.tolerance": tolerance},
            )
            for tolerance in _TOLERANCES
            for words, group in _GROUPS.items()
        ),
    )


register(
    on_mnist5k(
        label=LABEL,
        title="Pruning single weights, capsules or capsule types: accuracy, trees, and what shrinking leaves",
        metrics=(*METRICS, "parameters_share", "operations_share"),
        budgets={"smoke": TINY},
        perform=prune_and_shrink,
        settings=_settings(),
        claims=(
            our_claim(
                "Pruned by capsules or types the network becomes smaller: less than half of the operations "
                "are left at an accuracy within half a point.",
                groups_shrink,
            ),
            our_claim(
                "Pruned by single weights it hardly shrinks, however many of them are zero: nine tenths of "
                "the parameters stay.",
                weights_stay,
            ),
        ),
        deviations=(
            "Not in the thesis, which leaves structured pruning of capsules to future work.",
            "A small DR-CapsNet with eight types of capsules, 3,800 digits, 12 epochs. The tolerance is the "
            "part by which a cut may raise the validation loss.",
            "The parameters share and the operations share compare the network without its zeros "
            "(`torchcaps shrink`) with the whole one; both give the same answers.",
        ),
    )
)
