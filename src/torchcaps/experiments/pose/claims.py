"""What the chapter on rotations claims, and what goes beyond it, decided by rows."""

from __future__ import annotations

from torchcaps.core import Number

from ..plan import (
    MISSING,
    Check,
    Claim,
    Finding,
    Mean,
    RowsOf,
    decide,
    decide_best,
    decide_together,
    excess,
    larger,
    our_claim,
    with_spread,
)
from ..records import Row, by_setting

BORDERS, TABLE = "fig:quaternions_visualdiff", "tab:quaternions_tinyshapenetresults"
SOLIDS, ROUTING = "beyond:pose-networks", "beyond:pose-routing"
WEIGHT, IMAGES = "beyond:pose-weight", "beyond:pose-images"
_DAY = 24 * 60
THESIS_MINUTES = {"MLP": 4 * _DAY + 5 * 60, "ConvNet": 2 * _DAY + 60, "EM-CapsNet": 9 * _DAY + 5 * 60}


def name_of(network: str, split: str) -> str:
    """The setting of a network and a split."""
    return f"{network}, {split}"


def less(label: str, metric: str, better: str, worse: str) -> Check:
    """Whether one setting has less of a metric than another."""
    return larger(label, metric, [(worse, better)])


def ahead_of_all(label: str, one: str, others: tuple[str, ...]) -> Check:
    """Whether the rotations of one setting are nearer than those of each of several.

    Networks learn at different rates: a shorter training than the thesis's does not tell.
    """
    return larger(label, "test_rotation_error", [(other, one) for other in others], any_budget=False)


def below(label: str, metric: str, limit: Number, names: tuple[str, ...]) -> Check:
    """Whether the best of some settings has less of a metric than `limit`; those that have not run may."""

    def check(rows_of: RowsOf) -> Finding:
        found = by_setting(rows_of(label), metric)
        rows = sorted((found[name] for name in names if name in found), key=lambda row: row.ours)
        if not rows:
            return MISSING
        findings = [_lies_below(row, limit, f"best: {with_spread(row)}", cases=len(names)) for row in rows]
        return decide_best(findings, len(names) - len(rows))

    return check


def under_five_degrees(label: str, names: tuple[str, ...]) -> Claim:
    """That the best of some settings is nearly right on rotations it has not seen."""
    return our_claim(
        "A median error under 5 degrees on rotations that were held out.",
        below(label, "test_rotation_error", 5.0, names),
    )


def _lies_below(row: Row, limit: Number, because: str, *, any_budget: bool = True, cases: int = 1) -> Finding:
    verdict = decide(excess(Mean.of_row(row, any_budget=any_budget).times(-1), -limit, cases=cases))
    if verdict == "not confirmed" and row.budget != "full":
        verdict = "open"  # a longer training may get there
    return decide_together({row.setting: verdict}, 1, because)


def in_minutes(label: str, name: str) -> Check:
    """Whether a training of the full budget takes less than an hour; the thesis's took nine days."""

    def check(rows_of: RowsOf) -> Finding:
        row = by_setting(rows_of(label), "training_minutes").get(name)
        if row is None:
            return MISSING
        words = f"{with_spread(row)} against {THESIS_MINUTES['EM-CapsNet']:,} min"
        return _lies_below(row, 60, words, any_budget=False)

    return check


def more_than_first(metric: str, first: str, *others: str) -> Check:
    """Whether others have more of a metric than the first, as in the thesis's table; as in `ahead_of_all`."""
    return larger(TABLE, metric, [(other, first) for other in others], any_budget=False)
