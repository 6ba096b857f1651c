"""Training curves: loss and accuracy by epoch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, PercentFormatter

from torchcaps.core.errors import UserError

from .style import COOL, INK, MUTED, PAPER, SMALL, TEXT, TITLE, WARM, axes_at, canvas, plain_chart

Row = Mapping[str, Any]
Points = list[tuple[float, float]]


def draw_curves(rows: Sequence[Row]) -> Figure:
    """Loss on the left, validation accuracy on the right.

    Args:
        rows: One per epoch, with `epoch` and any of `train_loss`, `val_loss` and `val_accuracy` (a fraction);
            values that are missing or not finite leave a gap.
    """
    if not rows:
        raise UserError("no epochs to draw: the list of rows is empty")
    figure = canvas(900, 300)
    losses = axes_at(figure, (56, 48, 370, 196))
    _draw_panel(
        losses, "Loss", {"training": rows_of(rows, "train_loss"), "validation": rows_of(rows, "val_loss")}
    )
    losses.set_ylim(bottom=0)
    accuracy = axes_at(figure, (506, 48, 370, 196))
    points = rows_of(rows, "val_accuracy")
    _draw_panel(accuracy, "Validation accuracy", {"validation": points})
    accuracy.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=None))
    if points:
        _mark_best(accuracy, points)
    return figure


def rows_of(rows: Sequence[Row], key: str) -> Points:
    """(epoch, value) for each row that has a finite value, epochs counted from one."""
    values = [(float(row["epoch"]) + 1, row.get(key)) for row in rows]
    return [(epoch, float(value)) for epoch, value in values if value is not None and isfinite(value)]


def _draw_panel(axes: Axes, title: str, series: Mapping[str, Points]) -> None:
    plain_chart(axes)
    axes.text(0, 1.07, title, transform=axes.transAxes, fontsize=TITLE, fontweight="bold", color=INK)
    colours = {"training": WARM, "validation": COOL}
    shown = {name: points for name, points in series.items() if points}
    for name, points in shown.items():
        axes.plot(
            *zip(*points, strict=True),
            color=colours[name],
            linewidth=2,
            marker="o",
            markersize=3.5,
            label=name,
        )
    axes.set_xlabel("epoch", fontsize=TEXT, color=MUTED)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=8, min_n_ticks=1))
    axes.yaxis.set_major_locator(MaxNLocator(nbins=5))
    axes.margins(x=0.04, y=0.14)
    epochs = [epoch for points in shown.values() for epoch, _ in points]
    if len(set(epochs)) == 1:
        axes.set_xlim(epochs[0] - 1, epochs[0] + 1)
    if len(shown) > 1:
        axes.legend(loc="upper right", frameon=False, fontsize=TEXT, labelcolor=INK)


def _mark_best(axes: Axes, points: Points) -> None:
    epoch, value = max(points, key=lambda point: point[1])
    axes.plot(
        [epoch], [value], marker="o", markersize=9, color=PAPER, markeredgecolor=COOL, markeredgewidth=2
    )
    label = f"best {value:.2%}, epoch {epoch:g}"  # beside the title, where no curve can cross it
    style: dict[str, Any] = {"ha": "right", "fontsize": SMALL, "fontweight": "bold", "color": COOL}
    axes.text(1, 1.07, label, transform=axes.transAxes, **style)
