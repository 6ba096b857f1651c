"""Benchmark results: a dot for each case and backend, and how the time grows with each size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullFormatter, NullLocator

from torchcaps.core import Number, UserError

from ..style import (
    COOL,
    INK,
    LINE,
    MUTED,
    SMALL,
    TEXT,
    TITLE,
    WARM,
    axes_at,
    canvas,
    plain_chart,
    write_beside,
)
from ..text import shorten

Row = Mapping[str, Any]  # of a benchmark's file
Curves = dict[str, dict[str, list[tuple[float, float]]]]  # points by what varies and backend
_COLOURS = {
    "torch": "#8d93b3",
    "torch+graph": "#bcc1d6",
    "compiled": WARM,
    "compiled+graph": "#f7b48c",
    "fused": COOL,
    "fused+graph": "#27309a",
    "torch+compile+graph": "#9ecfc4",
    "fused+compile+graph": "#1f8a78",
}
_CURVES = {"batch": "batch", "in_caps": "children", "out_caps": "parents", "iterations": "iterations"}
_WIDTH, _LABELS, _LINE, _GAP, _TOP, _CURVE = 1110, 450, 15, 10, 92, 190


def draw_bench(rows: Sequence[Row]) -> Figure:
    """Dots of milliseconds on a logarithmic scale, and below them the scaling curves, if any.

    Args:
        rows: Of one device, as `torchcaps bench` writes them; one without `ms` is shown by its reason.
    """
    cases = _cases([row for row in rows if not row.get("curve")])
    curves = _curves(rows)
    if not any(row["ms"] for row in rows):
        raise UserError("there is no measurement to draw")
    dots = sum(len(case) * _LINE + _GAP for case in cases.values())
    height = _TOP + (dots + 54 if dots else 0) + (_CURVE + 110 if curves else 0)
    figure = canvas(_WIDTH, height)
    _head(figure, rows, height)
    if cases:
        _draw_dots(axes_at(figure, (_LABELS, _TOP, _WIDTH - _LABELS - 84, dots)), cases)
    if curves:
        _draw_curves(figure, curves, _TOP + (dots + 88 if dots else 26))
    return figure


def _cases(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """Rows by case and batch, in the order they were measured."""
    cases: dict[str, list[Row]] = {}
    for row in rows:
        cases.setdefault(f"{row['case']}, batch {row['batch']:,}", []).append(row)
    return cases


def _curves(rows: Sequence[Row]) -> Curves:
    """Points (size, milliseconds) by what varies and backend."""
    curves: Curves = {}
    for row in rows:
        name = row.get("curve")
        if name in _CURVES and row["ms"]:
            point = (float(row[name]), float(row["ms"]))
            curves.setdefault(name, {}).setdefault(row["backend"], []).append(point)
    return curves


def _head(figure: Figure, rows: Sequence[Row], height: Number) -> None:
    device, version = rows[0]["device"], rows[0]["torch"]

    def write(
        x: float, y: int, text: str, colour: str = INK, size: float = TEXT, weight: str = "normal"
    ) -> None:
        figure.text(x, 1 - y / height, text, fontsize=size, va="top", color=colour, fontweight=weight)

    write(0.016, 16, "Time of each case, in milliseconds", size=TITLE + 1, weight="bold")
    write(0.016, 40, f"{device}, torch {version}", MUTED)
    present = {row["backend"] for row in rows}
    place = 0.016
    for name in (name for name in _COLOURS if name in present):
        write(place, 62, "●", _COLOURS[name])
        write(place + 0.016, 62, name)
        place += 0.05 + 0.0075 * len(name)


def _draw_dots(axes: Axes, cases: Mapping[str, list[Row]]) -> None:
    times = [row["ms"] for case in cases.values() for row in case if row["ms"]]
    low = min(times, default=1.0) / 2
    axes.set_xscale("log")
    axes.set(
        xlim=(low, max(times, default=1.0) * 1.1),
        ylim=(sum(len(c) * _LINE + _GAP for c in cases.values()), 0),
    )
    top = 0
    for label, case in cases.items():
        middle = top + len(case) * _LINE / 2
        write_beside(axes, (low, middle), (-10, 0), shorten(label, 78), ha="right", va="center", color=INK)
        for number, row in enumerate(case):
            _draw_dot(axes, row, top + (number + 0.5) * _LINE, low)
        top += len(case) * _LINE + _GAP
    axes.spines[:].set_visible(False)
    axes.set_yticks([])
    _plain_numbers(axes)
    axes.grid(axis="x", color=LINE, linewidth=0.8)
    axes.set_axisbelow(True)


def _draw_dot(axes: Axes, row: Row, middle: Number, low: Number) -> None:
    time, colour = row["ms"], _COLOURS.get(row["backend"], MUTED)
    if time:
        axes.plot([low, time], [middle, middle], color=LINE, linewidth=1.2)
        axes.plot([time], [middle], marker="o", markersize=6.5, color=colour)
    reason = row.get("skipped") or row.get("error") or "not measured"
    words = _milliseconds(time) if time else shorten(f"{row['backend']}: {reason}", 80)
    write_beside(axes, (time or low, middle), (7 if time else 4, 0), words, va="center")


def _milliseconds(time: Number) -> str:
    return f"{time:,.0f}" if time >= 100 else f"{time:.3g}"


def _draw_curves(figure: Figure, curves: Curves, top: Number) -> None:
    shown = [name for name in _CURVES if name in curves]
    width = (_WIDTH - 60) / len(_CURVES)
    for position, name in enumerate(shown):
        axes = axes_at(figure, (44 + position * width, top, width - 44, _CURVE))
        plain_chart(axes, f"by {_CURVES[name]}")
        for backend, points in curves[name].items():
            colour = _COLOURS.get(backend, MUTED)
            axes.plot(
                *zip(*sorted(points), strict=True), color=colour, linewidth=1.8, marker="o", markersize=3.5
            )
        axes.set(xscale="log", yscale="log")
        sizes = sorted({size for points in curves[name].values() for size, _ in points})
        axes.xaxis.set_major_locator(FixedLocator(sizes if len(sizes) < 5 else sizes[::2]))
        _plain_numbers(axes)
        axes.yaxis.set_major_formatter("{x:g}")
        axes.yaxis.set_minor_formatter(NullFormatter())


def _plain_numbers(axes: Axes) -> None:
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter("{x:g}")
    axes.tick_params(which="both", length=0, labelsize=SMALL, labelcolor=MUTED)
