"""What the chapter on rotations claims, and what goes beyond it, decided by rows."""

from __future__ import annotations

from ..plan import Check, Finding, RowsOf, confirm, go_beyond
from ..records import Row, by_setting

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


def less(label: str, metric: str, better: str, worse: str, *, is_ours: bool = True) -> Check:
    """Whether one setting has less of a metric than another."""

    def check(rows_of: RowsOf) -> Finding:
        rows = _rows(rows_of, label, metric, better, worse)
        if rows is None:
            return _OPEN
        decide = go_beyond if is_ours else confirm
        return decide(rows[0].ours < rows[1].ours, " against ".join(map(_shown, rows)))

    return check


def ahead_of_all(label: str, metric: str, one: str, others: tuple[str, ...]) -> Check:
    """Whether one setting has less of a metric than each of several."""

    def check(rows_of: RowsOf) -> Finding:
        rows = _rows(rows_of, label, metric, one, *others)
        if rows is None:
            return _OPEN
        return go_beyond(all(rows[0].ours < row.ours for row in rows[1:]), "; ".join(map(_shown, rows)))

    return check


def below(label: str, metric: str, limit: float, names: tuple[str, ...]) -> Check:
    """Whether the best of some settings has less of a metric than `limit`."""

    def check(rows_of: RowsOf) -> Finding:
        found = by_setting(rows_of(label), metric)
        rows = [found[name] for name in names if name in found]
        if not rows:
            return _OPEN
        best = min(rows, key=lambda row: row.ours)
        return go_beyond(best.ours < limit, f"best: {_shown(best)}")

    return check


def in_minutes(label: str, name: str) -> Check:
    """Whether a training takes less than an hour; the thesis's took nine days."""

    def check(rows_of: RowsOf) -> Finding:
        rows = _rows(rows_of, label, "training_minutes", name)
        if rows is None:
            return _OPEN
        words = f"{_shown(rows[0], ' min')} against {_THESIS_MINUTES:,} min"
        return go_beyond(rows[0].ours < 60, words)

    return check


def split_flatters(label: str, names: tuple[str, ...]) -> Check:
    """Whether errors on new rotations are larger than on the test images of the thesis's split."""

    def check(rows_of: RowsOf) -> Finding:
        own, new = (by_setting(rows_of(label), metric) for metric in ("test_rotation_error", "novel_error"))
        both = [name for name in names if name in own and name in new]
        if not both:
            return _OPEN
        words = "; ".join(f"{name} {own[name].ours:.2f}° and {new[name].ours:.2f}°" for name in both)
        return go_beyond(all(new[name].ours > own[name].ours for name in both), words)

    return check


def best_loss_of_table(names: tuple[str, ...]) -> Check:
    """Whether the first of three networks has the lowest loss, as in the thesis's table."""

    def check(rows_of: RowsOf) -> Finding:
        rows = _rows(rows_of, TABLE, "test_loss", *names)
        if rows is None:
            return _OPEN
        words = "; ".join(f"{row.setting} {row.ours:.5f}" for row in rows)
        return confirm(all(rows[0].ours < row.ours for row in rows[1:]), words)

    return check
