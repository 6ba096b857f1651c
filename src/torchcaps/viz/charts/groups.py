"""Values in groups, one mark for each series: bars from zero, or dots where zero would hide differences."""

from __future__ import annotations

from collections.abc import Mapping

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from torchcaps.core import Number, UserError

from ..style import (
    INK,
    MUTED,
    SERIES,
    SMALL,
    axes_at,
    canvas,
    name_marks,
    plain_chart,
    write_at,
    write_beside,
)
from ..text import literal, width_of
from .measured import Measured

Groups = Mapping[str, Mapping[str, Measured]]  # by series, then by group
_LEFT, _WIDTH, _TOP, _STEP, _HEIGHT = 64, 900, 74, 240, 160
_LETTER = 7.6  # width of a letter


def draw_bars(
    charts: Mapping[str, Groups], *, unit: str = "", most: Number | None = None, chance: Number | None = None
) -> Figure:
    """Bars from zero, below each other for each title.

    Args:
        charts: Values by title of the chart, series and group.
        unit: Of all values.
        most: Where the vertical axis ends; by default above the highest bar.
        chance: A value to compare with, drawn as a dashed line.
    """
    figure, series = _start(charts, unit)
    for axes, groups in zip(figure.axes, charts.values(), strict=True):
        for found, place, colour, width in _marks(groups, series):
            axes.bar(place, found.value, 0.9 * width, color=colour)
            _draw_interval(axes, place, found)
        axes.set_ylim(0, most)
        if chance is not None:
            axes.axhline(float(chance), color=INK, linewidth=1, linestyle=(0, (4, 3)), label="chance")
    _name_series(figure, series)
    return figure


def draw_dots(charts: Mapping[str, Groups], *, unit: str = "", note: str = "") -> Figure:
    """Dots with intervals and words above them; all charts have one scale, which need not start at zero.

    Args:
        charts: Values by title of the chart, series and group; a missing one leaves a gap.
        unit: Of all values.
        note: What the words beside the dots are.
    """
    figure, series = _start(charts, unit)
    for axes, groups in zip(figure.axes, charts.values(), strict=True):
        for found, place, colour, _ in _marks(groups, series):
            axes.plot([place], [found.value], marker="o", markersize=7, color=colour)
            _draw_interval(axes, place, found)
            above = (place, float(found.value + found.interval[1]))
            write_beside(axes, above, (0, 6), found.words, ha="center")
    limits = [axes.get_ylim() for axes in figure.axes]
    low, high = min(low for low, _ in limits), max(high for _, high in limits)
    for axes in figure.axes:
        axes.set_ylim(low - 0.05 * (high - low), high + 0.15 * (high - low))
    _name_series(figure, series)
    write_at(figure, (18, 22), note, fontsize=SMALL, color=MUTED)
    return figure


def _start(charts: Mapping[str, Groups], unit: str) -> tuple[Figure, list[str]]:
    """Empty charts with their groups named, and the series in order."""
    values = [found for groups in charts.values() for of_series in groups.values() for found in of_series]
    series = list(dict.fromkeys(name for groups in charts.values() for name in groups))
    if not values:
        raise UserError("there is no finished run to draw")
    if len(series) > len(SERIES):
        raise UserError(f"there is room for 1 to {len(SERIES)} series, got {len(series)}")
    every = {title: _group_names(groups) for title, groups in charts.items()}
    upright = {title: _upright_height(names) for title, names in every.items()}
    figure = canvas(_WIDTH, _TOP + _STEP * len(charts) + sum(upright.values()) - 40)
    top: Number = _TOP
    for title, names in every.items():
        axes = axes_at(figure, (_LEFT, top, _WIDTH - _LEFT - 24, _HEIGHT))
        plain_chart(axes, title, unit=unit)
        turn = 90 if upright[title] else 0
        axes.set_xticks(range(len(names)), [literal(name) for name in names], rotation=turn)
        axes.set_xlim(-0.6, len(names) - 0.4)
        top += _STEP + upright[title]
    return figure, series


def _upright_height(names: list[str]) -> Number:
    """Pixels for names that stand upright, because they would cover each other; 0 where they lie."""
    longest = max(map(width_of, names), default=0)
    return 0 if _LETTER * longest * len(names) <= _WIDTH - _LEFT - 24 else _LETTER * longest


def _group_names(groups: Groups) -> list[str]:
    return list(dict.fromkeys(name for of_series in groups.values() for name in of_series))


def _marks(groups: Groups, series: list[str]) -> list[tuple[Measured, float, str, float]]:
    """Each value with its place, its colour and the room it has."""
    names, width = _group_names(groups), 0.85 / len(series)
    return [
        (found, names.index(group) + (number - (len(series) - 1) / 2) * width, SERIES[number], width)
        for number, name in enumerate(series)
        for group, found in groups.get(name, {}).items()
    ]


def _draw_interval(axes: Axes, place: float, found: Measured) -> None:
    below, above = found.interval
    if below or above:
        axes.errorbar(place, found.value, [[below], [above]], color=INK, linewidth=1.1, capsize=3)


def _name_series(figure: Figure, series: list[str]) -> None:
    axes = figure.axes[0]
    marks = {
        name: axes.plot([], [], marker="s", markersize=7, linestyle="", color=colour)[0]
        for name, colour in zip(series, SERIES, strict=False)
    }
    lines, names = axes.get_legend_handles_labels()  # that of chance, where it is drawn
    marks |= dict(zip(names, lines, strict=True))
    name_marks(figure, marks, place="upper right")
