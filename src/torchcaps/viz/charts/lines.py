"""Charts of curves, side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, MaxNLocator, NullLocator

from torchcaps.core import Number, UserError

from ..style import SERIES, axes_at, canvas, legend_columns, name_marks, plain_chart, write_beside
from .measured import Measured

_WIDTH, _TOP, _HEIGHT, _BELOW = 450, 52, 226, 84
_LEGEND_ROW = 20
_MOST_BARS = 20  # points of a curve that have an interval each; more have a band
_OPACITY, _FAINT, _FEW = 0.18, 0.08, 4  # of bands; more than a few lie over each other
_BESIDE = ((0, 7, "center"), (6, -11, "left"), (-7, 3, "right"))  # where the words of a curve stand

Curve = Sequence[tuple[Number, Measured]]


@dataclass(frozen=True)
class LineChart:
    """One chart: a curve for each name."""

    title: str
    curves: Mapping[str, Curve]
    across: str = ""  # what the horizontal axis measures
    unit: str = ""
    log_ticks: Sequence[Number] = ()  # places to name on a logarithmic axis; none: the axis is linear
    starts_at_zero: bool = False  # the horizontal axis


def draw_lines(charts: Sequence[LineChart]) -> Figure:
    """The charts in a row, and below them which colour is which curve."""
    names = list(dict.fromkeys(name for chart in charts for name, curve in chart.curves.items() if curve))
    if not names:
        raise UserError("there is no finished run to draw")
    if len(names) > len(SERIES):
        raise UserError(f"there is room for {len(SERIES)} curves, got {len(names)}")
    width = _WIDTH * len(charts)
    more_rows = -(-len(names) // legend_columns(names, width)) - 1
    figure = canvas(width, _TOP + _HEIGHT + _BELOW + _LEGEND_ROW * more_rows)
    opacity = _OPACITY if len(names) <= _FEW else _FAINT
    for position, chart in enumerate(charts):
        axes = axes_at(figure, (64 + _WIDTH * position, _TOP, _WIDTH - 90, _HEIGHT))
        plain_chart(axes, chart.title, across=chart.across, unit=chart.unit)
        for name, curve in chart.curves.items():
            if curve:
                _draw_curve(axes, name, curve, names.index(name), opacity=opacity)
        _scale(axes, chart)
    handles = {
        label: handle
        for axes in figure.axes
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    name_marks(figure, {name: handles[name] for name in names})
    return figure


def _draw_curve(axes: Axes, name: str, curve: Curve, number: int, *, opacity: float) -> None:
    x = [float(place) for place, _ in curve]
    y = [float(found.value) for _, found in curve]
    below, above = zip(*(found.interval for _, found in curve), strict=True)
    colour = SERIES[number]
    is_short = len(curve) < _MOST_BARS
    marker = "o" if is_short else ""
    axes.plot(x, y, color=colour, linewidth=2, marker=marker, markersize=4, label=name)
    if is_short:
        axes.errorbar(x, y, (below, above), color=colour, linestyle="", elinewidth=1.2, capsize=3, alpha=0.8)
    else:
        low, high = (
            [mean + sign * reach for mean, reach in zip(y, reaches, strict=True)]
            for sign, reaches in ((-1, below), (1, above))
        )
        axes.fill_between(x, low, high, color=colour, alpha=opacity, linewidth=0)
    right, up, align = _BESIDE[number % len(_BESIDE)]
    for place, found in curve:
        point = (float(place), float(found.value))
        write_beside(axes, point, (right, up), found.words, ha=align, color=colour)


def _scale(axes: Axes, chart: LineChart) -> None:
    axes.margins(x=0.06, y=0.16)
    axes.yaxis.set_major_locator(MaxNLocator(nbins=5))
    if chart.starts_at_zero:
        axes.set_xlim(left=0)
    if not chart.log_ticks:
        axes.xaxis.set_major_locator(MaxNLocator(nbins=6))
        return
    set_log_ticks(axes, chart.log_ticks)


def set_log_ticks(axes: Axes, ticks: Sequence[Number]) -> None:
    """A logarithmic axis across, with plain numbers at some places alone."""
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(FixedLocator(list(ticks)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter("{x:g}")
