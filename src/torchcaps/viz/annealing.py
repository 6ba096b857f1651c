"""Figures of routing annealing: loss and accuracy by iterations, accuracy bars, couplings of one capsule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import sqrt
from typing import Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

from torchcaps.core.errors import UserError

from .style import (
    COOL,
    COOL_MAP,
    INK,
    LINE,
    MUTED,
    SMALL,
    TEXT,
    TITLE,
    WARM,
    Number,
    axes_at,
    canvas,
    drawing_board,
    plain_chart,
)

_WAYS = ("#bcc1d6", "#8d93b3", WARM)  # two fixed, one annealed


class Point(NamedTuple):
    """Mean over seeds of what `iterations` rounds gave, and the deviation where there were several."""

    iterations: int
    mean: float
    spread: float | None = None


class Bar(NamedTuple):
    """Accuracy in percent, the deviation over seeds, and the words on top."""

    height: float
    spread: float | None
    words: str


def draw_iterations(panels: Mapping[str, Mapping[str, Sequence[Point]]]) -> Figure:
    """One panel for each quantity: a line over the number of iterations for each way of training.

    Args:
        panels: Points by title of the panel and by name of the line; bands are deviations over seeds.
    """
    if not any(points for lines in panels.values() for points in lines.values()):
        raise UserError("there is no finished run to draw")
    figure = canvas(450 * len(panels), 330)
    for position, (title, lines) in enumerate(panels.items()):
        axes = axes_at(figure, (56 + 450 * position, 48, 370, 226))
        _titled(axes, title)
        for (name, points), colour in zip(lines.items(), (COOL, WARM), strict=False):
            _draw_line(axes, name, points, colour)
        _scale_iterations(axes, [point.iterations for points in lines.values() for point in points])
    return figure


def _titled(axes: Axes, title: str) -> None:
    plain_chart(axes)
    axes.text(0, 1.07, title, transform=axes.transAxes, fontsize=TITLE, fontweight="bold", color=INK)


def _draw_line(axes: Axes, name: str, points: Sequence[Point], colour: str) -> None:
    places, means = [point.iterations for point in points], [point.mean for point in points]
    marker = "o" if len(points) < 20 else ""
    axes.plot(places, means, color=colour, linewidth=2, marker=marker, markersize=3.5, label=name)
    low, high = (
        [point.mean + sign * (point.spread or 0.0) for point in points] for sign in (-1, 1)
    )  # a single seed has no band
    axes.fill_between(places, low, high, color=colour, alpha=0.18, linewidth=0)
    axes.legend(loc="best", frameon=False, fontsize=TEXT, labelcolor=INK)


def _scale_iterations(axes: Axes, places: Sequence[int]) -> None:
    axes.set_xscale("log")
    shown = [place for place in (1, 2, 3, 5, 10, 20, 50, 100) if place in places]
    axes.xaxis.set_major_locator(FixedLocator(shown))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_major_locator(MaxNLocator(nbins=5))
    axes.set_xlabel("iterations", fontsize=TEXT, color=MUTED)
    axes.margins(x=0.04, y=0.1)


def draw_accuracy_bars(panels: Mapping[str, Mapping[str, Mapping[str, Bar]]]) -> Figure:
    """Groups of bars in each panel, one bar for each way of training, with words on top of each.

    Args:
        panels: Bars by title of the panel, name of the group and way; what is missing stays empty.
    """
    heights = [b.height for groups in panels.values() for ways in groups.values() for b in ways.values()]
    if not heights:
        raise UserError("there is no finished run to draw")
    ways = list(dict.fromkeys(way for groups in panels.values() for g in groups.values() for way in g))
    figure = canvas(1110, 50 + 210 * len(panels))
    margin = max(0.5, 0.12 * (max(heights) - min(heights)))
    for position, (title, groups) in enumerate(panels.items()):
        axes = axes_at(figure, (56, 64 + 210 * position, 1030, 140))
        _titled(axes, title)
        axes.set_ylim(min(heights) - margin, max(heights) + 1.6 * margin)
        for place, of_group in enumerate(groups.values()):
            for number, way in enumerate(ways):
                if way in of_group:
                    _draw_bar(axes, place + (number - 1) * 0.27, of_group[way], _WAYS[number % 3])
        axes.set_xticks(range(len(groups)), list(groups))
        axes.set_xlim(-0.6, len(groups) - 0.4)
    _name_ways(figure, ways)
    return figure


def _draw_bar(axes: Axes, place: Number, bar: Bar, colour: str) -> None:
    axes.bar(place, bar.height, 0.24, color=colour)
    if bar.spread is not None:
        axes.errorbar(place, bar.height, bar.spread, color=INK, linewidth=0.9, capsize=2)
    above = bar.height + (bar.spread or 0.0)
    style: dict[str, Any] = {"textcoords": "offset points", "ha": "center", "fontsize": SMALL, "color": INK}
    axes.annotate(bar.words, (float(place), above), (0, 3), **style)


def _name_ways(figure: Figure, ways: Sequence[str]) -> None:
    board = drawing_board(figure)
    for number, way in enumerate(ways):
        left = 56 + 150 * number
        board.text(left, 20, "■", fontsize=TEXT, va="center", color=_WAYS[number % 3])
        board.text(left + 16, 20, way, fontsize=TEXT, va="center", color=INK)
    words = "on top: iterations, the median over seeds"
    board.text(1086, 20, words, fontsize=TEXT, va="center", ha="right", color=MUTED)


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
    axes = axes_at(figure, (230 * len(shown) + 70, 48, 340, 226))
    _titled(axes, "coupling to each class")
    places = sorted(couplings)
    final = couplings[places[-1]]
    named: dict[str, Any] = {"textcoords": "offset points", "va": "center", "fontsize": SMALL, "color": INK}
    for number, name in enumerate(class_names):
        is_chosen = final[number] > 1.5 / len(final)  # clearly more than an even split
        colour = COOL_MAP(sqrt(final[number])) if is_chosen else LINE
        axes.plot(places, [couplings[place][number] for place in places], color=colour, linewidth=2)
        if is_chosen:
            axes.annotate(name, (places[-1], final[number]), (5, 0), **named)
    axes.set_ylim(0, 1.02)
    _scale_iterations(axes, places)
    return figure


def _draw_fan(
    board: Axes, left: Number, iterations: int, shares: Sequence[float], names: Sequence[str]
) -> None:
    words = f"{iterations} iteration{'s' if iterations > 1 else ''}"
    board.text(left, 30, words, fontsize=TITLE, fontweight="bold", color=INK)
    step = 240 / max(len(shares) - 1, 1)
    middle = 56 + 240 / 2
    for number, (share, name) in enumerate(zip(shares, names, strict=True)):
        height = 56 + number * step
        board.plot([left + 20, left + 160], [middle, height], color=COOL, linewidth=14 * share, alpha=0.85)
        board.plot([left + 166], [height], marker="o", markersize=9, color="white", markeredgecolor=INK)
        board.text(left + 178, height, name, fontsize=SMALL, va="center", color=MUTED)
    board.plot([left + 16], [middle], marker="o", markersize=13, color=COOL, markeredgecolor=INK)
