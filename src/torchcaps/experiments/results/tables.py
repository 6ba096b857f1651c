"""The rows of a result file, and how they are printed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from torchcaps.core.errors import MissingDataError
from torchcaps.storage import read_json

_COUNTS = ("keys", "parameters_left", "bottleneck", "primary_capsules", "iterations")
_MOST_ROWS = 2  # metrics of a setting in rows of their own; more become columns


def load_results(folder: Path, label: str) -> list[dict[str, Any]]:
    """Rows of one table or figure of the thesis, by its label with ':' and spaces as '-'."""
    path = folder / f"{label}.json"
    if not path.is_file():
        raise MissingDataError(f"no results at {path}")
    rows: list[dict[str, Any]] = read_json(path)["rows"]
    return rows


def render_table(rows: Iterable[Mapping[str, Any]]) -> str:
    """Rows as a Markdown table, thesis and ours side by side."""
    table = list(rows)
    metrics = list(dict.fromkeys(row["metric"] for row in table))
    if len(metrics) > _MOST_ROWS:
        return _one_row_per_setting(table, metrics)
    head = ("setting", "metric", "thesis", "ours", "seeds", "protocol")
    return _markdown(
        head,
        [(row["setting"], row["metric"], *_figures(row), row["seeds"], row["protocol"]) for row in table],
    )


def _one_row_per_setting(rows: list[Mapping[str, Any]], metrics: list[str]) -> str:
    settings: dict[str, dict[str, Mapping[str, Any]]] = {}
    for row in rows:
        settings.setdefault(row["setting"], {})[row["metric"]] = row

    def cell(row: Mapping[str, Any] | None) -> str:
        if row is None:
            return ""
        thesis, ours = _figures(row)
        return ours if thesis == "-" else f"{ours} (thesis {thesis})"

    lines = []
    for name, found in settings.items():
        some = next(iter(found.values()))
        cells = (cell(found.get(metric)) for metric in metrics)
        lines.append((name, *cells, some["seeds"], some["protocol"]))
    return _markdown(("setting", *metrics, "seeds", "protocol"), lines)


def _figures(row: Mapping[str, Any]) -> tuple[str, str]:
    """The thesis's figure and ours, with its spread."""
    digits = 4 if row["metric"].endswith("loss") else 0 if row["metric"] in _COUNTS else 2
    spread = f" ± {row['spread']:,.{digits}f}" if row["spread"] is not None else ""
    ours = "not yet" if row["ours"] is None else f"{row['ours']:,.{digits}f}{spread}"
    return "-" if row["thesis"] is None else f"{row['thesis']:,.{digits}f}", ours


def _markdown(head: Iterable[str], lines: Iterable[Iterable[object]]) -> str:
    names = [name.replace("_", " ") for name in head]
    rows = (f"| {' | '.join(map(str, cells))} |\n" for cells in (names, ["---"] * len(names), *lines))
    return "".join(rows)
