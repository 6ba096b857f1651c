"""Printing: tables for people, JSON for scripts."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from torchcaps.train import Fitted

_GAP = 2  # spaces between columns
_SHORT, _LONG_WORD = 12, 18  # characters of a cell
_ENDLESS = 10_000  # width where there is no terminal: a row stays one line


def print_json(value: Any) -> None:
    """Print plain data as JSON; a number that is not finite, which JSON does not know, is null.

    Names of files may hold bytes that are no text; these are escaped, as they would not be JSON.
    """
    from torchcaps.core import finite_or_none

    text = json.dumps(finite_or_none(value), indent=1, ensure_ascii=False, allow_nan=False)
    typer.echo(re.sub("[\ud800-\udfff]", lambda found: f"\\u{ord(found[0]):x}", text))


def say_chosen(fitted: Fitted) -> None:
    """Say on stderr which keys of a recipe were chosen from its data, if any."""
    if fitted.chosen:
        chosen = ", ".join(f"{key}={value}" for key, value in fitted.chosen.items())
        typer.echo(f"chosen for {fitted.recipe.data.name}: {chosen}", err=True)


def print_table(rows: Sequence[dict[str, Any]]) -> None:
    """Print rows with the keys of the first as header; brackets in names are no markup.

    Words and numbers stay whole: where a terminal is too narrow, the last columns are left out, and a line on
    stderr names them.
    """
    from rich.console import Console

    console = Console()
    width = console.width if console.is_terminal else _ENDLESS
    texts = {key: [_cell(row[key]) for row in rows] for key in (rows[0] if rows else ())}
    widths = _fitting_widths(texts, width)
    whole = max(width, sum(widths.values()) + _GAP * len(widths))  # also of a name longer than the terminal
    Console(width=whole).print(_table(rows, texts, widths))
    if left_out := [key for key in texts if key not in widths]:
        names = ", ".join(left_out)
        typer.echo(f"left out, for a terminal of {width} columns: {names}; pipe it to see all", err=True)


def _table(rows: Sequence[dict[str, Any]], texts: dict[str, list[str]], widths: dict[str, int]) -> Any:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, _GAP, 0, 0))
    for key, width in widths.items():
        is_number = isinstance(rows[0][key], int | float)
        table.add_column(Text(key), justify="right" if is_number else "left", overflow="fold", width=width)
    for cells in zip(*(texts[key] for key in widths), strict=True):
        table.add_row(*map(Text, cells))
    return table


def _fitting_widths(texts: dict[str, list[str]], total: int) -> dict[str, int]:
    """The width of each column that fits; those that lack little are made whole before those of sentences."""
    from rich.cells import cell_len  # of letters that are two columns wide too

    most = {key: max(map(cell_len, (key, *cells))) for key, cells in texts.items()}
    widths = {key: _least_width(cells) for key, cells in texts.items()}
    if first := next(iter(texts), None):
        widths[first] = most[first]  # what a row is about
    while len(widths) > 1 and _whole_width(widths) > total:
        widths.popitem()
    spare = max(0, total - _whole_width(widths))
    for key in sorted(widths, key=lambda key: most[key] - widths[key]):
        given = min(spare, most[key] - widths[key])
        widths[key], spare = widths[key] + given, spare - given
    return widths


def _whole_width(widths: dict[str, int]) -> int:
    return sum(widths.values()) + _GAP * (len(widths) - 1)


def _least_width(cells: list[str]) -> int:
    """Short cells stay on one line, sentences are broken between words, and only the longest words within."""
    from rich.cells import cell_len

    longest = max(map(cell_len, cells), default=0)
    if longest > _SHORT:
        longest = max(cell_len(word) for cell in cells for word in cell.split())
    return max(1, min(longest, _LONG_WORD))


def _cell(value: Any) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    if isinstance(value, list):
        is_shape = all(isinstance(item, int) for item in value)
        return ("x" if is_shape else ", ").join("-" if item is None else str(item) for item in value)
    return "" if value is None else str(value)
