"""Rows as Markdown tables, thesis and ours side by side."""

from __future__ import annotations

from collections.abc import Sequence

from torchcaps.core import counted, markdown_table, metric_of

from ..records import Row, Rows, by_setting_and_metric, metric_heading

_MOST_ROWS = 2  # metrics of a setting in rows of their own; more become columns


def render_table(rows: Rows) -> str:
    """Rows as a Markdown table."""
    metrics = list(dict.fromkeys(row.metric for row in rows))
    if len(metrics) > _MOST_ROWS:
        return _one_row_per_setting(rows, metrics)
    return markdown_table(
        ("setting", "metric", "thesis", "ours", "seeds", "protocol"),
        [
            (row.setting, metric_heading(row.metric), *figures_of(row), row.seeds, row.protocol)
            for row in rows
        ],
    )


def _one_row_per_setting(rows: Rows, metrics: Sequence[str]) -> str:
    lines = []
    for name, found in by_setting_and_metric(rows).items():
        most = max(found.values(), key=lambda row: row.seeds)
        cells = (_cell(found.get(metric), most.seeds) for metric in metrics)
        lines.append((name, *cells, most.seeds, most.protocol))
    return markdown_table(("setting", *map(metric_heading, metrics), "seeds", "protocol"), lines)


def _cell(row: Row | None, seeds: int) -> str:
    """A figure in a line whose other figures are of so many seeds."""
    if row is None:
        return ""
    thesis, ours = figures_of(row)
    known = [
        *([f"thesis {thesis}"] if thesis != "-" else []),
        *([counted(row.seeds, "seed")] if row.seeds < seeds else []),
    ]
    return f"{ours} ({', '.join(known)})" if known else ours


def figures_of(row: Row) -> tuple[str, str]:
    """The thesis's figure and ours, with its spread."""
    digits = metric_of(row.metric).digits
    spread = "" if row.spread is None else f" ± {row.spread:,.{digits}f}"
    return "-" if row.thesis is None else f"{row.thesis:,.{digits}f}", f"{row.ours:,.{digits}f}{spread}"
