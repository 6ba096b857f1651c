"""How each metric of PartWhole changes with what is done to a network, as tables for documents."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from torchcaps.core import markdown_table, metric_of

from ..plan import Mean, RowsOf, decide, difference, mean_of
from ..records import by_setting, metric_heading
from .claims import CLUTTER, STRENGTHS, at_clutter
from .networks import DR, ENTROPY, GAMMA, ONE_ROUND, REM
from .search import DEEP_STEM
from .search import LABEL as SEARCH


class Change(NamedTuple):
    """Two settings of one experiment that are compared."""

    label: str
    before: str
    after: str


_MIDDLE = 0.3
_ONE_LAYER = f"{DEEP_STEM}, dynamic routing"
_MAPS = ("saliency", "contribution", "even")
_TITLES = {"saliency": "saliency", "contribution": "contributions", "even": "even map"}


def _instead(network: str, strength: float = _MIDDLE) -> Change:
    return Change(CLUTTER, at_clutter(DR, strength), at_clutter(network, strength))


def _on_deep_stem(layers: str) -> Change:
    after = f"{DEEP_STEM}, {layers} capsule layers"
    return Change(SEARCH, at_clutter(_ONE_LAYER, _MIDDLE), at_clutter(after, _MIDDLE))


NETWORKS: Mapping[str, Change] = {
    "clutter 0 → 0.3": Change(CLUTTER, at_clutter(DR, 0.0), at_clutter(DR, _MIDDLE)),
    "with REM": _instead(REM),
    "with the entropy objective": _instead(ENTROPY),
    "three rounds → one": _instead(ONE_ROUND),
    "DR → gamma": _instead(GAMMA),
    "one capsule layer → two": _on_deep_stem("two"),
    "one capsule layer → five": _on_deep_stem("five"),
}
BACKGROUND: Mapping[str, Change] = {
    f"REM at clutter {strength:g}": _instead(REM, strength) for strength in STRENGTHS
}
_AGAINST_TRUTH = (
    *("part_purity", "part_purity_base", "tree_precision", "random_tree_precision"),
    *("tree_recall", "random_tree_recall", "equivariance_error"),
)
_SHARES = tuple(f"{name}_on_{place}" for name in _MAPS for place in ("object", "clutter", "background"))
TABLES = {
    "networks": (NETWORKS, ("test_accuracy", "accuracy_with_even", *_SHARES, *_AGAINST_TRUTH)),
    "background": (BACKGROUND, _SHARES),
}


def render_changes(rows_of: RowsOf, name: str) -> str:
    """Means over seeds before and after each change; bold where the seeds tell them apart.

    Args:
        rows_of: The rows of an experiment by its label.
        name: "networks" or "background".
    """
    changes, metrics = TABLES[name]
    rows = [
        (_heading(metric), *(_cell(rows_of, change, metric) for change in changes.values()))
        for metric in metrics
    ]
    return markdown_table(("", *changes), rows)


def _heading(metric: str) -> str:
    family, _, place = metric.partition("_on_")
    return metric_heading(metric) if place != "background" else f"{_TITLES[family]} on the background, %"


def _cell(rows_of: RowsOf, change: Change, metric: str) -> str:
    settings = change.before, change.after
    before, after = (_mean(rows_of, change.label, setting, metric) for setting in settings)
    if before is None or after is None:
        return ""
    digits = 2 if metric.endswith("_on_background") else metric_of(metric).digits
    # rounded as a row is first, so that a number reads the same on its page
    first, second = (f"{round(mean.value, 4):,.{digits}f}" for mean in (before, after))
    if first == second:
        return first
    is_told = "confirmed" in (decide(difference(before, after)), decide(difference(after, before)))
    return f"{first} → **{second}**" if is_told else f"{first} → {second}"


def _mean(rows_of: RowsOf, label: str, setting: str, metric: str) -> Mean | None:
    family, _, place = metric.partition("_on_")
    if place == "background":
        return _mean_on_background(rows_of, label, setting, family)
    row = by_setting(rows_of(label), metric).get(setting)
    return None if row is None else mean_of(row)


def _mean_on_background(rows_of: RowsOf, label: str, setting: str, family: str) -> Mean | None:
    """What lies neither on the object nor on clutter, run by run."""
    on_object, on_clutter = (
        by_setting(rows_of(label), f"{family}_on_{place}").get(setting) for place in ("object", "clutter")
    )
    if on_object is None or on_clutter is None:
        return None
    pairs = zip(on_object.runs, on_clutter.runs, strict=True)
    return Mean.of_values([100 * (1 - float(first.value) - float(second.value)) for first, second in pairs])
