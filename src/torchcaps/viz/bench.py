"""Benchmark results: bars for each case by backend, and how the time grows with each size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter, NullLocator

from torchcaps.core.errors import UserError

from .style import (
    COOL,
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
    plain_chart,
    shorten,
)

Row = Mapping[str, Any]
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
_WIDTH, _LABELS, _BAR, _GAP, _TOP, _CURVE = 1110, 450, 15, 10, 92, 190


def draw_bench(rows: Sequence[Row]) -> Figure:
    """Bars of milliseconds on a logarithmic scale, and below them the scaling curves, if any.

    Args:
        rows: Of one device, as `torchcaps bench` writes them; one without `ms` is shown by its reason.
    """
    cases = _cases([row for row in rows if not row.get("curve")])
    curves = _curves(rows)
    if not any(row["ms"] for row in rows):
        raise UserError("there is no measurement to draw")
    bars = sum(len(case) * _BAR + _GAP for case in cases.values())
    height = _TOP + (bars + 54 if bars else 0) + (_CURVE + 110 if curves else 0)
    figure = canvas(_WIDTH, height)
    _head(figure, rows, height)
    if cases:
        _draw_bars(axes_at(figure, (_LABELS, _TOP, _WIDTH - _LABELS - 84, bars)), cases)
    if curves:
        _draw_curves(figure, curves, _TOP + (bars + 88 if bars else 26))
    return figure


def _cases(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """Rows by case and batch, in the order they were measured."""
    cases: dict[str, list[Row]] = {}
    for row in rows:
        cases.setdefault(f"{row['case']}, batch {row['batch']:,}", []).append(row)
    return cases


def _curves(rows: Sequence[Row]) -> dict[str, dict[str, list[tuple[float, float]]]]:
    """Points (size, milliseconds) by what varies and backend."""
    curves: dict[str, dict[str, list[tuple[float, float]]]] = {}
    for row in rows:
        name = row.get("curve")
        if name in _CURVES and row["ms"]:
            point = (float(row[name]), float(row["ms"]))
            curves.setdefault(name, {}).setdefault(row["backend"], []).append(point)
    return curves


def _head(figure: Figure, rows: Sequence[Row], height: Number) -> None:
    device, version = rows[0]["device"], rows[0]["torch"]
    style: dict[str, Any] = {"va": "top", "color": INK}
    figure.text(
        0.016,
        1 - 16 / height,
        "Time of each case, in milliseconds",
        fontsize=TITLE + 1,
        **style,
        fontweight="bold",
    )
    figure.text(0.016, 1 - 40 / height, f"{device}, torch {version}", fontsize=TEXT, va="top", color=MUTED)
    present = {row["backend"] for row in rows}
    place = 0.016
    for name in (name for name in _COLOURS if name in present):
        figure.text(place, 1 - 62 / height, "■", fontsize=TEXT, va="top", color=_COLOURS[name])
        figure.text(place + 0.016, 1 - 62 / height, name, fontsize=TEXT, **style)
        place += 0.05 + 0.0075 * len(name)


def _draw_bars(axes: Axes, cases: Mapping[str, list[Row]]) -> None:
    times = [row["ms"] for case in cases.values() for row in case if row["ms"]]
    low = min(times, default=1.0) / 2
    axes.set_xscale("log")
    axes.set(
        xlim=(low, max(times, default=1.0) * 1.1), ylim=(sum(len(c) * _BAR + _GAP for c in cases.values()), 0)
    )
    top = 0
    for label, case in cases.items():
        middle = top + len(case) * _BAR / 2
        axes.annotate(
            shorten(label, 78),
            (low, middle),
            (-10, 0),
            textcoords="offset points",
            ha="right",
            va="center",
            fontsize=SMALL,
            color=INK,
        )
        for number, row in enumerate(case):
            _draw_bar(axes, row, top + (number + 0.5) * _BAR, low)
        top += len(case) * _BAR + _GAP
    axes.spines[:].set_visible(False)
    axes.set_yticks([])
    _plain_numbers(axes)
    axes.grid(axis="x", color=LINE, linewidth=0.8)
    axes.set_axisbelow(True)


def _draw_bar(axes: Axes, row: Row, middle: Number, low: Number) -> None:
    time, colour = row["ms"], _COLOURS.get(row["backend"], MUTED)
    if time:
        axes.barh(middle, time - low, left=low, height=_BAR - 3, color=colour)
    reason = row.get("skipped") or row.get("error") or "not measured"
    words = _milliseconds(time) if time else shorten(f"{row['backend']}: {reason}", 80)
    axes.annotate(
        words,
        (time or low, middle),
        (4, 0),
        textcoords="offset points",
        va="center",
        fontsize=SMALL,
        color=MUTED,
    )


def _milliseconds(time: Number) -> str:
    return f"{time:,.0f}" if time >= 100 else f"{time:.3g}"


def _draw_curves(figure: Figure, curves: Mapping[str, Any], top: Number) -> None:
    shown = [name for name in _CURVES if name in curves]
    width = (_WIDTH - 60) / len(_CURVES)
    for position, name in enumerate(shown):
        axes = axes_at(figure, (44 + position * width, top, width - 44, _CURVE))
        plain_chart(axes)
        axes.text(
            0,
            1.07,
            f"by {_CURVES[name]}",
            transform=axes.transAxes,
            fontsize=TITLE,
            fontweight="bold",
            color=INK,
        )
        for backend, points in curves[name].items():
            colour = _COLOURS.get(backend, MUTED)
            axes.plot(
                *zip(*sorted(points), strict=True), color=colour, linewidth=1.8, marker="o", markersize=3.5
            )
        axes.set(xscale="log", yscale="log")
        sizes = sorted({size for points in curves[name].values() for size, _ in points})
        axes.xaxis.set_major_locator(FixedLocator(sizes if len(sizes) < 5 else sizes[::2]))
        _plain_numbers(axes)
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.yaxis.set_minor_formatter(NullFormatter())


def _plain_numbers(axes: Axes) -> None:
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.tick_params(which="both", length=0, labelsize=SMALL, labelcolor=MUTED)
