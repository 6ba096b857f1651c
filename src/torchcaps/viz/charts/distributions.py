"""How often couplings have each level."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from matplotlib.figure import Figure

from torchcaps.core import UserError

from ..pictures import Array
from ..style import SERIES, axes_at, canvas, name_marks, plain_chart

_LEAST = 1e-4  # share below which the vertical axis is linear


class LevelShares(NamedTuple):
    """Shares of couplings: (classes, levels), and the levels that they belong to."""

    levels: Array
    shares: Array


def draw_distributions(networks: Mapping[str, LevelShares]) -> Figure:
    """A chart for each network: the share of couplings at each level, by class and on average."""
    if not networks:
        raise UserError("there is no finished run to draw")
    figure = canvas(14 + 430 * len(networks), 360)
    for number, (name, (levels, shares)) in enumerate(networks.items()):
        axes = axes_at(figure, (80 + 430 * number, 50, 340, 220))
        plain_chart(axes, name, across="coupling", unit="share of couplings")
        colour = SERIES[number % 2]
        for of_class in shares:
            axes.plot(levels, of_class, color=colour, alpha=0.3, linewidth=0.9)
        axes.plot(levels, shares.mean(0), color=colour, linewidth=2.2, marker="o", markersize=4)
        axes.set_yscale("symlog", linthresh=_LEAST)
        axes.yaxis.set_major_formatter("{x:g}")
        axes.set_ylim(0, 1.2)
    lines = figure.axes[0].lines
    name_marks(figure, {"one class": lines[0], "mean over classes": lines[-1]})
    return figure
