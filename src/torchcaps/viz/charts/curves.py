"""Training curves: loss, and a metric of the validation images, by epoch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from torchcaps.core import Metric, UserError, metric_of

from ..style import COOL, INK, PAPER, SMALL, TEXT, WARM, axes_at, canvas, plain_chart

Row = Mapping[str, object]
Points = list[tuple[float, float]]
_COLOURS = {"training": WARM, "validation": COOL}


def draw_curves(rows: Sequence[Row], *, metric: str = "accuracy", kept: int | None = None) -> Figure:
    """Loss on the left, a validation metric on the right.

    Args:
        rows: One per epoch, with `epoch` and any of `train_loss`, `val_loss` and the metric as `val_...`;
            values that are missing or not finite leave a gap.
        metric: The name of a registered metric.
        kept: The epoch whose weights were kept, which is marked; by default the one with the best metric is.
    """
    if not rows:
        raise UserError("no epochs to draw: the list of rows is empty")
    figure = canvas(900, 300)
    losses = axes_at(figure, (56, 48, 370, 196))
    series = {"training": _points(rows, "train_loss"), "validation": _points(rows, "val_loss")}
    _draw_panel(losses, "Loss", series)
    losses.set_ylim(bottom=0)
    measured = metric_of(metric)
    right = axes_at(figure, (506, 48, 370, 196))
    points = _points(rows, f"val_{metric}")
    _draw_panel(right, f"Validation {measured.title}", {"validation": points})
    right.yaxis.set_major_formatter(
        FuncFormatter(lambda value, _: f"{measured.scale * value:.4g}{measured.unit}")
    )
    if points:
        _mark(right, points, measured, kept)
    return figure


def _points(rows: Sequence[Row], key: str) -> Points:
    """(epoch, value) for each row that has a finite value, epochs counted from one."""
    values = [(row["epoch"], row.get(key)) for row in rows]
    return [
        (float(epoch) + 1, float(value))
        for epoch, value in values
        if isinstance(epoch, int | float) and isinstance(value, int | float) and isfinite(value)
    ]


def _draw_panel(axes: Axes, title: str, series: Mapping[str, Points]) -> None:
    plain_chart(axes, title, across="epoch")
    shown = {name: points for name, points in series.items() if points}
    for name, points in shown.items():
        x, y = zip(*points, strict=True)
        axes.plot(x, y, color=_COLOURS[name], linewidth=2, marker="o", markersize=3.5, label=name)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=8, min_n_ticks=1))
    axes.yaxis.set_major_locator(MaxNLocator(nbins=5))
    axes.margins(x=0.04, y=0.14)
    epochs = [epoch for points in shown.values() for epoch, _ in points]
    if len(set(epochs)) == 1:
        axes.set_xlim(epochs[0] - 1, epochs[0] + 1)
    if len(shown) > 1:
        axes.legend(loc="upper right", frameon=False, fontsize=TEXT, labelcolor=INK)


def _mark(axes: Axes, points: Points, metric: Metric, kept: int | None) -> None:
    """Mark the epoch that counts, and name it beside the title, where no curve can cross it."""
    if kept is None:
        sign = -1 if metric.better == "lower" else 1
        word, (epoch, value) = "best", max(points, key=lambda point: sign * point[1])
    else:
        word, marked = "kept", [point for point in points if point[0] == kept + 1]
        if not marked:
            return
        epoch, value = marked[0]
    axes.plot(
        [epoch], [value], marker="o", markersize=9, color=PAPER, markeredgecolor=COOL, markeredgewidth=2
    )
    words = f"{word} {metric.format(value)}, epoch {epoch:g}"
    axes.set_title(words, loc="right", fontsize=SMALL, fontweight="bold", color=COOL, pad=12)
