"""The rows of a benchmark file: plain data, and a table of it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypedDict

from torchcaps.core import MissingDataError, UserError, markdown_table

BenchRow = TypedDict(  # the fields are explained in benchmarks/README.md
    "BenchRow",
    {
        "suite": str,
        "case": str,
        "backend": str,
        "batch": int,
        "device": str,
        "torch": str,
        "commit": str | None,
        "ms": float | None,
        "spread": float | None,
        "repeats": int,
        "img_s": float | None,
        "peak_mb": float | None,
        "quarters_mb": list[float],
        "flops": int,
        "bytes": int,
        "floor_ms": float,
        "share_of_ceiling": float,
        "error": str,
        "skipped": str,
        "precision": str,
        "pass": str,
        "model": str,
        "params": int | None,
        "in_caps": int,
        "out_caps": int,
        "routing": str,
        "iterations": int,
        "gradient": str | None,
        "curve": str | None,
    },
    total=False,
)


class BenchResults(TypedDict):
    """The content of a benchmark file."""

    provenance: dict[str, Any]
    ceilings: dict[str, float | None]
    rows: list[BenchRow]


def read_rows(file: Path) -> list[BenchRow]:
    """The rows of a file that `torchcaps bench --out` wrote."""
    if not file.is_file():
        raise MissingDataError(f"no results at {file}; make them with torchcaps bench SUITE --out {file}")
    try:
        rows: list[BenchRow] = json.loads(file.read_text(encoding="utf-8"))["rows"]
    except (ValueError, TypeError, KeyError) as error:  # no JSON, no text at all, or other JSON
        raise UserError(f"{file} holds no benchmark results: {error}") from error
    return rows


def render_bench(rows: Iterable[BenchRow], words: Iterable[str] = ()) -> str:
    """Measured training passes as a Markdown table, scaling curves left out.

    Args:
        rows: Of one file of `benchmarks/results`.
        words: Only rows with all of them in their case, batch or backend are shown.
    """
    shown = []
    for row in rows:
        ms = row["ms"]
        if ms is None or row.get("curve") is not None or row["case"].endswith("forward"):
            continue
        if all(word in f"{row['case']}, {row['batch']}, {row['backend']}" for word in words):
            time = f"{ms:,.0f}" if ms >= 100 else f"{ms:.3g}"
            images = row["img_s"] or 0.0
            rate = f"{images:,.0f}" if images >= 10 else f"{images:.2g}"
            memory = "-" if row["peak_mb"] is None else f"{row['peak_mb']:,.0f}"
            shown.append((row["case"], row["batch"], row["backend"], time, rate, memory))
    return markdown_table(("what", "batch", "backend", "ms", "img/s", "MiB"), shown)
