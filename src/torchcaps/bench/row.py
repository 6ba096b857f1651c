"""The rows of a benchmark file, as plain data."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, TypedDict

from torchcaps.core.errors import MissingDataError, UserError

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
        rows: list[BenchRow] = json.loads(file.read_text())["rows"]
    except (json.JSONDecodeError, TypeError, KeyError) as error:
        raise UserError(f"{file} holds no benchmark results: {error}") from error
    return rows
