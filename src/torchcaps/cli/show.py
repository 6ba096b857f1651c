"""Printing: tables for people, JSON for scripts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import typer


def print_json(value: Any) -> None:
    """Print plain data as JSON; a number that is not finite, which JSON does not know, is null."""
    from torchcaps.core.fields import finite_or_none

    typer.echo(json.dumps(finite_or_none(value), indent=1, ensure_ascii=False, allow_nan=False))


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
