"""Benchmark rows as a table of a document."""

from __future__ import annotations

from collections.abc import Iterable

from .row import BenchRow


def render_bench(rows: Iterable[BenchRow], words: Iterable[str] = ()) -> str:
    """Measured training passes as a Markdown table, scaling curves left out.

    Args:
        rows: Of one file of `benchmarks/results`.
        words: Only rows with all of them in their case, batch or backend are shown.
    """
    lines = ["| what | batch | backend | ms | img/s | MiB |\n| --- | --- | --- | --- | --- | --- |\n"]
    for row in rows:
        ms = row["ms"]
        if ms is None or row.get("curve") is not None or row["case"].endswith("forward"):
            continue
        if all(word in f"{row['case']}, {row['batch']}, {row['backend']}" for word in words):
            time = f"{ms:,.0f}" if ms >= 100 else f"{ms:.3g}"
            cells = (row["case"], row["batch"], row["backend"], time, f"{row['img_s']:,.0f}")
            memory = "-" if row["peak_mb"] is None else f"{row['peak_mb']:,.0f}"
            lines.append(f"| {' | '.join(map(str, cells))} | {memory} |\n")
    return "".join(lines)
