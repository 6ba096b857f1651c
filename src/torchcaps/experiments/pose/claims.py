"""What the chapter on rotations claims, and what goes beyond it, decided by rows."""

from __future__ import annotations

from ..plan import Check, Finding, Mean, RowsOf, as_ours, decide, decide_together, difference, excess
from ..records import Number, Row, by_setting

BORDERS, TABLE = "fig:quaternions_visualdiff", "tab:quaternions_tinyshapenetresults"
SOLIDS, ROUTING = "beyond:pose-networks", "beyond:pose-routing"
_OPEN = Finding("open", "runs are missing")
_DAY = 24 * 60
_THESIS_MINUTES = 9 * _DAY + 5 * 60  # 9 d 5 h of the EM-CapsNet


def name_of(network: str, split: str) -> str:
    """The setting of a network and a split."""
    return f"{network}, {split}"


def _rows(rows_of: RowsOf, label: str, metric: str, *names: str) -> list[Row] | None:
    found = by_setting(rows_of(label), metric)
    return [found[name] for name in names] if all(name in found for name in names) else None


def _shown(row: Row, unit: str = "°") -> str:
    spread = "" if row.spread is None else f" ± {row.spread:.2f}"
    return f"{row.setting} {row.ours:.2f}{spread}{unit}"


def _mean(row: Row) -> Mean:
    """That of a row; on our renders every budget is long enough to compare networks."""
    return Mean.of_row(row, any_budget=True)


def _all_larger(rows: list[Row], than: Row, unit: str = "°") -> Finding:
    """Whether each row has a larger mean than another one, beyond the spread of their seeds."""
    because = "; ".join(_shown(row, unit) for row in (than, *rows))
    verdicts = {row.setting: decide(difference(_mean(row), _mean(than))) for row in rows}
    return decide_together(verdicts, len(rows), because)


def less(label: str, metric: str, better: str, worse: str, *, is_ours: bool = True) -> Check:
    """Whether one setting has less of a metric than another."""
    check = _ahead(label, metric, better, (worse,))
    return check if not is_ours else lambda rows_of: as_ours(check(rows_of))


def ahead_of_all(label: str, metric: str, one: str, others: tuple[str, ...]) -> Check:
    """Whether one setting has less of a metric than each of several."""
    check = _ahead(label, metric, one, others)
    return lambda rows_of: as_ours(check(rows_of))


def _ahead(label: str, metric: str, one: str, others: tuple[str, ...], *, unit: str = "°") -> Check:

    def check(rows_of: RowsOf) -> Finding:
        rows = _rows(rows_of, label, metric, one, *others)
        return _OPEN if rows is None else _all_larger(rows[1:], rows[0], unit)

    return check


def below(label: str, metric: str, limit: Number, names: tuple[str, ...]) -> Check:
    """Whether the best of some settings has less of a metric than `limit`."""

    def check(rows_of: RowsOf) -> Finding:
        found = by_setting(rows_of(label), metric)
        rows = [found[name] for name in names if name in found]
        if not rows:
            return _OPEN
        best = min(rows, key=lambda row: row.ours)
        return as_ours(_lies_below(best, limit, f"best: {_shown(best)}"))

    return check


def _lies_below(row: Row, limit: Number, because: str) -> Finding:
    verdict = decide(excess(_mean(row).times(-1), -limit))
    return decide_together({row.setting: verdict}, 1, because)


def in_minutes(label: str, name: str) -> Check:
    """Whether a training takes less than an hour; the thesis's took nine days."""

    def check(rows_of: RowsOf) -> Finding:
        rows = _rows(rows_of, label, "training_minutes", name)
        if rows is None:
            return _OPEN
        words = f"{_shown(rows[0], ' min')} against {_THESIS_MINUTES:,} min"
        return as_ours(_lies_below(rows[0], 60, words))

    return check


def split_flatters(label: str, names: tuple[str, ...]) -> Check:
    """Whether errors on new rotations are larger than on the test images of the thesis's split."""

    def check(rows_of: RowsOf) -> Finding:
        own, new = (by_setting(rows_of(label), metric) for metric in ("test_rotation_error", "novel_error"))
        both = [name for name in names if name in own and name in new]
        words = "; ".join(f"{name} {own[name].ours:.2f}° and {new[name].ours:.2f}°" for name in both)
        verdicts = {name: decide(difference(_mean(new[name]), _mean(own[name]))) for name in both}
        return as_ours(decide_together(verdicts, len(names), words)) if both else _OPEN

    return check


def best_loss_of_table(names: tuple[str, ...]) -> Check:
    """Whether the first of three networks has the lowest loss, as in the thesis's table."""
    return _ahead(TABLE, "test_loss", names[0], names[1:], unit="")
