"""Printing: tables for people, JSON for scripts."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import typer


def print_json(value: Any) -> None:
    """Print plain data as JSON; a number that is not finite, which JSON does not know, is null."""
    typer.echo(json.dumps(_finite(value), indent=1, ensure_ascii=False, allow_nan=False))


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def print_table(rows: Sequence[dict[str, Any]]) -> None:
    """Print rows with the keys of the first as header; brackets in names are no markup."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, header_style="bold", pad_edge=False)
    for position, key in enumerate(rows[0] if rows else ()):
        is_number = isinstance(rows[0][key], int | float)
        table.add_column(
            Text(key), justify="right" if is_number else "left", overflow="fold", no_wrap=position == 0
        )
    for row in rows:
        table.add_row(*(Text(_cell(value)) for value in row.values()))
    console = Console()
    Console(width=console.width if console.is_terminal else 200).print(table)


def _cell(value: Any) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    if isinstance(value, list):
        is_shape = all(isinstance(item, int) for item in value)
        return ("x" if is_shape else ", ").join("-" if item is None else str(item) for item in value)
    return "" if value is None else str(value)
