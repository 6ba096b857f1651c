"""Benchmark rows as a table of a document."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any


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
