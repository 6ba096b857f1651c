"""Claims that say of two numbers which is larger: of two settings, or of two metrics of one."""

from __future__ import annotations

from collections.abc import Sequence

from torchcaps.core import metric_of

from ..records import Row, by_setting
from .claim import MISSING, Check, Finding, RowsOf
from .evidence import Case, Effect, Mean, case_of_rows, decide_together, difference, gain


def with_spread(row: Row) -> str:
    """A setting and its number."""
    spread = "" if row.spread is None else f" ± {row.spread:.2f}"
    return f"{row.setting} {row.ours:.2f}{spread}{_unit(row.metric)}"


def _unit(metric: str) -> str:
    unit = metric_of(metric).unit
    return unit if unit in ("", "°") else f" {unit}"


def larger(
    label: str,
    metric: str,
    pairs: Sequence[tuple[str, str]],
    *,
    any_budget: bool = True,
    cases: int = 1,
) -> Check:
    """Whether the first setting of each pair has more of a metric, beyond the spread of the seeds.

    Without `any_budget` runs of less than the thesis's protocol leave it open. `cases` as in `excess`.
    """
    names = list(dict.fromkeys(name for more, less in pairs for name in (less, more)))
    is_distinct = len({more for more, _ in pairs}) == len(pairs)

    def check(rows_of: RowsOf) -> Finding:
        rows = by_setting(rows_of(label), metric)
        found = {name: Mean.of_row(row, any_budget=any_budget) for name, row in rows.items()}
        compared = {
            more if is_distinct else less: case_of_rows(
                difference(found[more], found[less], cases=cases), rows[more], rows[less]
            )
            for more, less in pairs
            if more in found and less in found
        }
        if not compared:
            return MISSING
        words = "; ".join(with_spread(rows[name]) for name in names if name in rows)
        return decide_together(compared, len(pairs), words)

    return check


def larger_metric(
    label: str, more: str, less: str, names: Sequence[str], *, by: float = 0.0, any_budget: bool = True
) -> Check:
    """Whether the runs of each of some settings have more of one metric than of another, by at least `by`.

    Without `any_budget` runs of less than the thesis's protocol leave it open.
    """

    def _of_budget(effect: Effect, row: Row) -> Effect:
        return effect._replace(is_short=not any_budget and row.budget != "full")

    def check(rows_of: RowsOf) -> Finding:
        few, many = (by_setting(rows_of(label), metric) for metric in (less, more))
        both = [name for name in names if name in few and name in many]
        if not both:
            return MISSING
        unit = _unit(more)
        words = (f"{name} {few[name].ours:.2f}{unit} and {many[name].ours:.2f}{unit}" for name in both)
        gains = {name: _of_budget(gain(many[name], few[name]), many[name]) for name in both}
        cases = {name: Case(each, by) for name, each in gains.items()}
        return decide_together(cases, len(names), "; ".join(words))

    return check
