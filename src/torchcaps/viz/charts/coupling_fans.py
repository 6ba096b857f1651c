"""The couplings of one capsule as iterations are added."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import sqrt

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from torchcaps.core import Number, UserError, counted

from ..style import (
    COOL,
    COOL_MAP,
    INK,
    LINE,
    MUTED,
    SMALL,
    TITLE,
    axes_at,
    canvas,
    drawing_board,
    plain_chart,
    write_beside,
)
from .lines import set_log_ticks


def draw_coupling_fans(
    couplings: Mapping[int, Sequence[float]], class_names: Sequence[str], *, panels: Sequence[int]
) -> Figure:
    """Lines from one capsule to the classes, as wide as its couplings, and how each grows with iterations.

    Args:
        couplings: Share of the capsule that each class gets, by number of iterations.
        class_names: One for each class.
        panels: The numbers of iterations that get a fan of their own.
    """
    shown = [iterations for iterations in panels if iterations in couplings]
    if not shown:
        raise UserError("there are no couplings to draw for these numbers of iterations")
    figure = canvas(230 * len(shown) + 440, 330)
    board = drawing_board(figure)
    for position, iterations in enumerate(shown):
        _draw_fan(board, 24 + 230 * position, iterations, couplings[iterations], class_names)
    _draw_growth(axes_at(figure, (230 * len(shown) + 70, 48, 340, 226)), couplings, class_names)
    return figure


def _draw_growth(axes: Axes, couplings: Mapping[int, Sequence[float]], names: Sequence[str]) -> None:
    """A curve for each class; those that end well above an even share are named."""
    plain_chart(axes, "Coupling to each class", across="iterations")
    places = sorted(couplings)
    final = couplings[places[-1]]
    for number, name in enumerate(names):
        is_chosen = final[number] > 1.5 / len(final)
        colour = COOL_MAP(sqrt(final[number])) if is_chosen else LINE
        axes.plot(places, [couplings[place][number] for place in places], color=colour, linewidth=2)
        if is_chosen:
            end = (places[-1], final[number])
            write_beside(axes, end, (5, 0), name, va="center", color=INK)
    axes.set_ylim(0, 1.02)
    set_log_ticks(axes, places)


def _draw_fan(
    board: Axes, left: Number, iterations: int, shares: Sequence[float], names: Sequence[str]
) -> None:
    words = counted(iterations, "iteration")
    board.text(left, 30, words, fontsize=TITLE, fontweight="bold", color=INK)
    step = 240 / max(len(shares) - 1, 1)
    middle = 56 + 240 / 2
    for number, (share, name) in enumerate(zip(shares, names, strict=True)):
        height = 56 + number * step
        board.plot([left + 20, left + 160], [middle, height], color=COOL, linewidth=14 * share, alpha=0.85)
        board.plot([left + 166], [height], marker="o", markersize=9, color="white", markeredgecolor=INK)
        board.text(left + 178, height, name, fontsize=SMALL, va="center", color=MUTED)
    board.plot([left + 16], [middle], marker="o", markersize=13, color=COOL, markeredgecolor=INK)
