"""Accuracy against the operations of training, one panel for each trunk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from torchcaps.core.errors import UserError

from .style import COOL, INK, MUTED, SMALL, TEXT, TITLE, WARM, axes_at, canvas, plain_chart

_COLOURS = (COOL, WARM, "#8d93b3")
_WIDTH, _HEIGHT = 420, 230
_BESIDE = (  # of a point, where its label stands: curves lie close together, and rise to the right
    {"xytext": (0, 7), "ha": "center"},
    {"xytext": (-7, 3), "ha": "right"},
    {"xytext": (0, -15), "ha": "center"},
)


class FlopsPoint(NamedTuple):
    """One network: billions of operations, accuracy in percent with its spread, and what stands beside it."""

    gflops: float
    accuracy: float
    spread: float
    label: str


def draw_flops(panels: Mapping[str, Mapping[str, Sequence[FlopsPoint]]]) -> Figure:
    """Curves of accuracy over operations, by title of the panel and name of the curve."""
    shown = {title: curves for title, curves in panels.items() if any(curves.values())}
    if not shown:
        raise UserError("there is no network to draw")
    names = list(dict.fromkeys(name for curves in shown.values() for name in curves))
    figure = canvas(60 + _WIDTH * len(shown), _HEIGHT + 110)
    for number, (title, curves) in enumerate(shown.items()):
        axes = axes_at(figure, (60 + number * _WIDTH, 52, _WIDTH - 60, _HEIGHT))
        _draw_panel(axes, title, curves, names)
        if number == 0:
            axes.set_ylabel("test accuracy, %", fontsize=TEXT, color=MUTED)
    return figure


def _draw_panel(
    axes: Axes, title: str, curves: Mapping[str, Sequence[FlopsPoint]], names: Sequence[str]
) -> None:
    plain_chart(axes)
    axes.text(0, 1.07, title, transform=axes.transAxes, fontsize=TITLE, fontweight="bold", color=INK)
    for name, points in curves.items():
        if points:
            number = names.index(name)
            _draw_curve(axes, name, sorted(points), number)
    axes.set_xlabel("billions of operations to train on one image", fontsize=TEXT, color=MUTED)
    axes.set_xlim(left=0)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=6))
    axes.yaxis.set_major_locator(MaxNLocator(nbins=6))
    axes.margins(x=0.12, y=0.2)
    axes.legend(loc="lower right", frameon=False, fontsize=SMALL, labelcolor=INK)


def _draw_curve(axes: Axes, name: str, points: Sequence[FlopsPoint], number: int) -> None:
    x, y, spread, labels = zip(*points, strict=True)
    colour = _COLOURS[number % len(_COLOURS)]
    style: dict[str, Any] = {"color": colour, "linewidth": 2, "marker": "o", "markersize": 4, "capsize": 3}
    axes.errorbar(x, y, yerr=spread if any(spread) else None, label=name, **style)
    beside: dict[str, Any] = _BESIDE[number % len(_BESIDE)]
    for place, height, label in zip(x, y, labels, strict=True):
        axes.annotate(
            label, (place, height), fontsize=SMALL, color=colour, textcoords="offset points", **beside
        )
