"""Tables in documents, from the files in `results/`: `python -m torchcaps.experiments.tables FILE...`."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from torchcaps.core.errors import MissingDataError
from torchcaps.inspection import describe_model
from torchcaps.models import list_models
from torchcaps.storage import read_json

_BLOCK = re.compile(r"(<!-- results: ([\w-]+) -->\n).*?(<!-- end -->)", re.DOTALL)
_BENCH = re.compile(r"(<!-- bench: ([\w-]+)(?: where ([^>\n]+))? -->\n).*?(<!-- end -->)", re.DOTALL)
_MODELS = re.compile(r"(<!-- models -->\n).*?(<!-- end -->)", re.DOTALL)
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


def render_bench(rows: Iterable[Mapping[str, Any]], words: Iterable[str] = ()) -> str:
    """Measured training passes as a Markdown table, scaling curves left out.

    Args:
        rows: Of one file of `benchmarks/results`.
        words: Rows stay that have all of them in their case, batch or backend.
    """
    lines = ["| what | batch | backend | ms | img/s | MiB |\n| --- | --- | --- | --- | --- | --- |\n"]
    for row in rows:
        is_shown = row.get("curve") is None and row["ms"] is not None and not row["case"].endswith("forward")
        if is_shown and all(word in f"{row['case']}, {row['batch']}, {row['backend']}" for word in words):
            ms = f"{row['ms']:,.0f}" if row["ms"] >= 100 else f"{row['ms']:.3g}"
            cells = (row["case"], row["batch"], row["backend"], ms, f"{row['img_s']:,.0f}")
            memory = "-" if row["peak_mb"] is None else f"{row['peak_mb']:,.0f}"
            lines.append(f"| {' | '.join(map(str, cells))} | {memory} |\n")
    return "".join(lines)


def render_models() -> str:
    """Every registered model, without the tiny ones that tests use."""
    lines = [
        "| model | parameters | MFLOP | input | classes | paper |\n| --- | --- | --- | --- | --- | --- |\n"
    ]
    for name in list_models():
        facts = describe_model(name)
        shape = "x".join(map(str, facts["input"]))
        cells = (f"`{name}`", f"{facts['params']:,}", f"{facts['flops'] / 1e6:,.1f}", shape)
        lines.append(f"| {' | '.join(cells)} | {facts['classes']} | {facts['paper']} |\n")
    return "".join(lines)


def refresh(text: str, root: Path) -> str:
    """The document with its blocks `results: label`, `bench: file where words` and `models` written anew."""

    def results(match: re.Match[str]) -> str:
        return match[1] + render_table(load_results(root / "results", match[2])) + match[3]

    def bench(match: re.Match[str]) -> str:
        rows = load_results(root / "benchmarks" / "results", match[2])
        return match[1] + render_bench(rows, (match[3] or "").split()) + match[4]

    text = _BENCH.sub(bench, _BLOCK.sub(results, text))
    return _MODELS.sub(lambda match: match[1] + render_models() + match[2], text)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        path = Path(name)
        path.write_text(refresh(path.read_text(), Path()))
