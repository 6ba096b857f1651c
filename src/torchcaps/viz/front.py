"""Accuracy against entropy, one point for each way of training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from torchcaps.core.errors import UserError

from .style import COOL, INK, MUTED, SMALL, TEXT, TITLE, WARM, WRONG, Number, axes_at, canvas, plain_chart

_COLOURS = (INK, COOL, WARM, WRONG)


class Point(NamedTuple):
    """A way of training: the words beside it, the method it belongs to, and what it gave."""

    words: str
    method: str
    entropy: Number  # bits
    accuracy: Number  # %
    spread: Number | None = None  # of the accuracy
    is_empty: bool = False  # its trees decide nothing


def draw_front(panels: Mapping[str, Sequence[Point]], aims: Mapping[str, tuple[Number, Number]]) -> Figure:
    """A chart for each panel, one colour for each method; hollow points have trees that decide nothing.

    Args:
        panels: The points by the title of their chart.
        aims: By title, the entropy and the accuracy to compare with, drawn as a cross.
    """
    methods = list(dict.fromkeys(point.method for points in panels.values() for point in points))
    if not methods or len(methods) > len(_COLOURS):
        raise UserError(f"a front has points of 1 to {len(_COLOURS)} methods, got {len(methods)}")
    colours = dict(zip(methods, _COLOURS, strict=False))
    figure = canvas(40 + 430 * len(panels), 400)
    for number, (title, points) in enumerate(panels.items()):
        axes = axes_at(figure, (76 + 430 * number, 60, 350, 270))
        plain_chart(axes)
        axes.set_title(title, loc="left", fontsize=TITLE, color=INK, pad=28)
        axes.set_xlabel("entropy, bits", fontsize=TEXT, color=MUTED)
        axes.set_ylabel("accuracy, quantized, %", fontsize=TEXT, color=MUTED)
        for point in points:
            _draw_point(axes, point, colours[point.method])
        if title in aims:
            axes.plot(*aims[title], marker="x", color=MUTED, markersize=8, linestyle="", label="thesis, REM")
        axes.margins(0.12)
        _legend(axes, colours)
    return figure


def _draw_point(axes: Axes, point: Point, colour: str) -> None:
    axes.errorbar(
        point.entropy,
        point.accuracy,
        yerr=point.spread,
        color=colour,
        marker="o",
        markersize=7,
        markerfacecolor="white" if point.is_empty else colour,
        linestyle="",
    )
    place = (point.entropy, point.accuracy)
    axes.annotate(point.words, place, (7, 4), textcoords="offset points", fontsize=SMALL, color=MUTED)


def _legend(axes: Axes, colours: Mapping[str, str]) -> None:
    for method, colour in colours.items():
        axes.plot([], [], marker="o", color=colour, linestyle="", label=method)
    axes.legend(
        frameon=False,
        fontsize=SMALL,
        labelcolor=INK,
        loc="lower left",
        bbox_to_anchor=(-0.02, 1),
        ncols=len(colours) + 1,
        borderaxespad=0.2,
        handletextpad=0.2,
        columnspacing=0.9,
    )
