"""The claims of the chapter on efficient capsules, decided by rows."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial
from itertools import pairwise

from torchcaps.core import metric_of

from ..plan import (
    MISSING,
    Case,
    Check,
    Claim,
    Effect,
    Finding,
    Mean,
    decide,
    decide_together,
    difference,
    mean_of,
    on_rows,
    our_claim,
)
from ..records import Rows, by_setting
from .names import (
    BASELINES,
    FIGURE,
    PHOTOGRAPHS,
    SHARES,
    TABLE,
    TRUNKS,
    WAYS,
    baseline_name,
    capsnet_name,
    published_name,
)

_SAME = 1.0  # points of accuracy that count as kept
_STEADY = 0.02  # share by which two measurements of one cost may differ


def _accuracies(rows: Rows, *names: str) -> list[Mean] | None:
    """The accuracies of settings that all have been trained, with any budget: all claims on them are ours."""
    found = by_setting(rows, "test_accuracy")
    if not all(name in found for name in names):
        return None
    return [mean_of(found[name]) for name in names]


def _pruning_gains(rows: Rows, *, kept: float, at_least: float) -> Finding:
    """The accuracy of ResNet-50 with a share of its FLOPs changes by more than `at_least` points."""
    found = _accuracies(rows, *(capsnet_name("ResNet-50", share, "fine-tuned") for share in (1.0, kept)))
    if found is None:
        return MISSING
    whole, pruned = found
    gap = difference(pruned, whole)
    because = f"{pruned.value:.2f} against {whole.value:.2f} %, difference {gap}"
    return Finding(decide(gap, at_least=at_least), because)


def _gaps(rows: Rows, pairs: Sequence[Sequence[str]]) -> dict[str, Effect]:
    """How much more accurate the first setting of each pair is, by the name of the second."""
    found = {name: _accuracies(rows, other, name) for other, name in pairs}
    return {name: difference(*both) for name, both in found.items() if both is not None}


def _frozen_is_worse(rows: Rows, trunks: Collection[str]) -> Finding:
    pairs = [[capsnet_name(trunk, kept, way) for way in WAYS] for trunk in trunks for kept in SHARES]
    gaps = _gaps(rows, pairs)
    if not gaps:
        return MISSING
    sizes = [gap.size for gap in gaps.values()]
    because = f"fine-tuning adds {min(sizes):.2f} to {max(sizes):.2f} points"
    cases = {name: Case(gap) for name, gap in gaps.items()}
    return decide_together(cases, len(pairs), because)


def _less_pruned_is_better(rows: Rows, trunks: Collection[str]) -> Finding:
    cases: dict[str, Case] = {}
    words = []
    for trunk in trunks:
        found = _accuracies(rows, *(capsnet_name(trunk, kept, "frozen") for kept in reversed(SHARES)))
        if found is None:
            continue
        words.append(f"{trunk} {', '.join(f'{accuracy.value:.2f}' for accuracy in found)} %")
        cases |= {
            f"step {number} of {trunk}": Case(difference(after, before))
            for number, (before, after) in enumerate(pairwise(found), start=1)
        }
    if not cases:
        return MISSING
    planned = len(trunks) * (len(SHARES) - 1)
    return decide_together(cases, planned, f"{'; '.join(words)} as less is pruned")


def _factorising_is_cheap(rows: Rows) -> Finding:
    pairs = [[capsnet_name(trunk, 1.0, way) for way in ("factorised", "fine-tuned")] for trunk in TRUNKS]
    gaps = _gaps(rows, pairs)
    if not gaps:
        return MISSING
    cases = {name: Case(gap, -_SAME) for name, gap in gaps.items()}
    losses = [-gap.size for gap in gaps.values()]
    because = f"it costs {min(losses):.2f} to {max(losses):.2f} points"
    return decide_together(cases, len(pairs), because)


def _search_pays(rows: Rows) -> Finding:
    names = [capsnet_name("ResNet-50", 0.5, "fine-tuned"), *map(baseline_name, BASELINES)]
    found = _accuracies(rows, *names)
    if found is None:
        return MISSING
    searched, even, blind = found
    because = f"{searched.value:.2f} against {even.value:.2f} and {blind.value:.2f} %"
    cases = {
        name: Case(difference(searched, other))
        for name, other in zip(BASELINES.values(), (even, blind), strict=True)
    }
    return decide_together(cases, len(cases), because)


def _falls(metric: str, *, in_eights: bool = False) -> Check:
    """A measured cost falls with every step."""
    names = [published_name(kept, in_eights=in_eights and kept < 1) for kept in SHARES]

    def check(rows: Rows) -> Finding:
        found = by_setting(rows, metric)
        costs = [mean_of(found[name]) for name in names if name in found]
        if len(costs) < len(names):
            return MISSING
        cases = {
            f"step {number}": _fall(before, after)
            for number, (before, after) in enumerate(pairwise(costs), start=1)
        }
        words = " to ".join(f"{cost.value:.2f}" for cost in costs)
        return decide_together(cases, len(cases), f"{words} {metric_of(metric).unit}")

    return on_rows(TABLE, check)


def _fall(before: Mean, after: Mean) -> Case:
    """Beyond their spread over runs, and beyond what two measurements differ by however well runs agree."""
    fall = difference(before, after)
    return Case(fall._replace(margin=max(fall.margin, _STEADY * before.value)))


def _about_pruning(label: str, trunks: Collection[str]) -> tuple[Claim, ...]:
    """Sentences of ours on accuracy, decided by one experiment.

    The thesis has sentences like them, about trunks that were trained on other images (`runs` says which).
    """
    half = (
        "Ours: with half of the trunk's FLOPs pruned the accuracy stays, within a point (ResNet-50, "
        "fine-tuned)."
    )
    quarter = "Ours: with a quarter pruned it improves (ResNet-50, fine-tuned)."
    frozen = "Ours: trunks are less accurate frozen than fine-tuned, also on the images they were trained on."
    less_pruned = "Ours: frozen trunks are more accurate the less of them is pruned."
    return (
        our_claim(half, on_rows(label, partial(_pruning_gains, kept=0.5, at_least=-_SAME))),
        our_claim(quarter, on_rows(label, partial(_pruning_gains, kept=0.75, at_least=0.0))),
        our_claim(frozen, on_rows(label, partial(_frozen_is_worse, trunks=trunks))),
        our_claim(less_pruned, on_rows(label, partial(_less_pruned_is_better, trunks=trunks))),
    )


FIGURE_CLAIMS = (
    *_about_pruning(FIGURE, TRUNKS),
    our_claim(
        "Ours: EagleEye's search is better than one ratio for all layers, with L1 norms or at random.",
        on_rows(FIGURE, _search_pays),
    ),
    our_claim(
        "Ours: a factorised primary layer keeps the accuracy within a point.",
        on_rows(FIGURE, _factorising_is_cheap),
    ),
)
PHOTOGRAPH_CLAIMS = _about_pruning(PHOTOGRAPHS, ("ResNet-50",))
TABLE_CLAIMS = (
    Claim("Pruning saves memory: 47.0 to 43.5 to 39.4 to 20.1 GB.", _falls("gpu_memory_gb")),
    Claim("Pruning saves time: 462 to 450 to 410 to 214 s an epoch.", _falls("epoch_seconds")),
    our_claim(
        "Ours: pruning saves time where widths are multiples of eight.",
        _falls("epoch_seconds", in_eights=True),
    ),
    Claim("Pruning saves energy, by our rule in training.", _falls("joules_per_image")),
    Claim("Pruning saves time of inference, by our rule of 128 images on a GPU.", _falls("gpu_ms_128")),
)
