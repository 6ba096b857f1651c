"""The confusion matrix, with mistakes standing out."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from numpy.typing import NDArray

from torchcaps.core import Number, UserError

from .pictures import ArrayLike, to_array
from .style import (
    COOL,
    INK,
    MUTED,
    PAPER,
    TEXT,
    TILE,
    TITLE,
    WRONG,
    axes_at,
    canvas,
    write_at,
    write_beside,
)
from .text import drawable_labels, literal, shorten

_MOST_WITH_NUMBERS = 30


def draw_confusion(counts: ArrayLike, class_names: Sequence[str] | None = None) -> Figure:
    """Counts with the true class in rows; right ones blue, mistakes red, the share found at the right."""
    table = to_array(counts)
    if table.ndim != 2 or table.shape[0] != table.shape[1] or not table.size:
        raise UserError(f"a confusion matrix is square, got shape {table.shape}")
    names = [shorten(name, 14) for name in drawable_labels(class_names, len(table))]
    longest = max(map(len, names))
    cell = max(14, min(46, 620 // len(table)))
    side, margin = cell * len(table), 44 + 6.5 * longest
    top = 84 + (5 * longest if longest > 3 else 0)  # long names lean above their columns
    figure = canvas(max(margin + side + 84, 320.0), side + top + 34)
    axes = axes_at(figure, (margin, top, side, side))
    axes.imshow(_cell_colours(table), aspect="auto")
    if len(table) <= _MOST_WITH_NUMBERS:
        _write_counts(axes, table, min(TEXT + 1, cell * 0.3))
    size = min(TEXT, cell * 0.4)
    _label_axes(axes, names, size)
    _write_shares(axes, table, size)
    _write_summary(figure, margin, table)
    return figure


def _cell_colours(table: NDArray[np.float64]) -> NDArray[np.float64]:
    """Blue by the share of the class found, red by how a mistake compares with the most frequent one."""
    share = table / np.maximum(table.sum(axis=1, keepdims=True), 1)
    mistakes = table * (1 - np.eye(len(table)))
    strength = 0.12 + 0.88 * mistakes / max(mistakes.max(), 1)
    is_right = np.eye(len(table), dtype=bool)
    colour = np.where(is_right[..., None], to_rgb(COOL), to_rgb(WRONG))
    weight = np.where(is_right, 0.15 + 0.85 * share, strength) * (table > 0)
    return to_rgb(TILE) + weight[..., None] * (colour - to_rgb(TILE))


def _write_counts(axes: Axes, table: NDArray[np.float64], size: Number) -> None:
    brightness = _cell_colours(table) @ (0.299, 0.587, 0.114)
    for (row, column), count in np.ndenumerate(table):
        if count:
            axes.text(
                column,
                row,
                f"{count:.0f}",
                ha="center",
                va="center",
                fontsize=size,
                fontweight="bold",
                color=PAPER if brightness[row, column] < 0.6 else INK,
            )


def _label_axes(axes: Axes, names: list[str], size: Number) -> None:
    places, labels = range(len(names)), [literal(name) for name in names]
    is_long = max(map(len, names)) > 3
    axes.set_xticks(
        places,
        labels,
        rotation=40 if is_long else 0,
        ha="left" if is_long else "center",
        rotation_mode="anchor",
    )
    axes.set_yticks(places, labels)
    axes.tick_params(length=0, labelsize=size, labelcolor=INK, top=False, labeltop=True, labelbottom=False)
    axes.spines[:].set_visible(False)
    axes.set_xticks(np.arange(len(names) + 1) - 0.5, minor=True)
    axes.set_yticks(np.arange(len(names) + 1) - 0.5, minor=True)
    axes.grid(which="minor", color=PAPER, linewidth=2)
    axes.tick_params(which="minor", length=0)


def _write_shares(axes: Axes, table: NDArray[np.float64], size: Number) -> None:
    total, found = table.sum(axis=1), np.diag(table)
    edge = len(table) - 0.5

    def write(text: str, row: Number, offset: int, align: str) -> None:
        write_beside(axes, (edge, row), (10, offset), text, va=align, fontsize=size)

    write("found", edge, -6, "top")
    for row, (right, all_of_them) in enumerate(zip(found, total, strict=True)):
        write(f"{right / all_of_them:.1%}" if all_of_them else "none", row, 0, "center")


def _write_summary(figure: Figure, left: Number, table: NDArray[np.float64]) -> None:
    mistakes = table.sum() - np.trace(table)
    words = f"{mistakes:.0f} of {table.sum():.0f} wrong"
    write_at(figure, (left, 30), words, fontsize=TITLE, fontweight="bold", color=INK)
    write_at(figure, (left, 50), "true class down, predicted across", fontsize=TEXT, color=MUTED)
