"""Accuracy against entropy, one dot for each way of training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from torchcaps.core import Number, UserError

from ..style import INK, MUTED, SERIES, axes_at, canvas, name_marks, plain_chart, write_beside
from .measured import Measured


class EntropyDot(NamedTuple):
    """What one way of training gave: bits, and percent of the test images."""

    entropy: Number
    accuracy: Measured
    is_undecided: bool = False  # its trees decide nothing: their entropy is low for that reason


def draw_accuracy_entropy(
    charts: Mapping[str, Mapping[str, Sequence[EntropyDot]]], aims: Mapping[str, tuple[Number, Number]]
) -> Figure:
    """A chart for each title, a colour for each method, and hollow dots for trees that decide nothing.

    Args:
        charts: The dots by title of their chart and by method.
        aims: By title, the entropy and the accuracy to compare with, drawn as a cross.
    """
    methods = list(dict.fromkeys(method for dots in charts.values() for method in dots))
    if not methods or len(methods) > len(SERIES):
        raise UserError(f"there is room for dots of 1 to {len(SERIES)} methods, got {len(methods)}")
    colours = dict(zip(methods, SERIES, strict=False))
    figure = canvas(40 + 430 * len(charts), 400)
    for number, (title, by_method) in enumerate(charts.items()):
        axes = axes_at(figure, (76 + 430 * number, 50, 350, 250))
        plain_chart(axes, title, across="entropy, bits", unit="accuracy, quantized, %")
        for method, dots in by_method.items():
            for dot in dots:
                _draw_dot(axes, dot, colours[method])
        if title in aims:
            axes.plot(*aims[title], marker="x", color=MUTED, markersize=8, linestyle="")
        axes.margins(0.14)
    _legend(figure, colours, is_aimed=bool(aims), has_hollow=_has_hollow(charts))
    return figure


def _has_hollow(charts: Mapping[str, Mapping[str, Sequence[EntropyDot]]]) -> bool:
    return any(dot.is_undecided for methods in charts.values() for dots in methods.values() for dot in dots)


def _draw_dot(axes: Axes, dot: EntropyDot, colour: str) -> None:
    below, above = dot.accuracy.interval
    place = float(dot.entropy), float(dot.accuracy.value)
    fill = "white" if dot.is_undecided else colour
    if below or above:
        axes.errorbar(*place, [[below], [above]], color=colour, linestyle="", elinewidth=1.2, capsize=3)
    axes.plot(*place, color=colour, marker="o", markersize=7, markerfacecolor=fill, linestyle="")
    write_beside(axes, place, (7, 4), dot.accuracy.words)


def _legend(figure: Figure, colours: Mapping[str, str], *, is_aimed: bool, has_hollow: bool) -> None:
    axes = figure.axes[0]

    def entry(marker: str, colour: str, fill: str) -> Artist:
        return axes.plot([], [], marker=marker, color=colour, markerfacecolor=fill, linestyle="")[0]

    entries = {method: entry("o", colour, colour) for method, colour in colours.items()}
    if has_hollow:
        entries["hollow: its trees decide nothing"] = entry("o", INK, "white")
    if is_aimed:
        entries["thesis, REM"] = entry("x", MUTED, MUTED)
    name_marks(figure, entries)
