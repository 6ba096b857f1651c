"""How surprising a parse tree is beside those of other images."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from torchcaps.core import Number, UserError

from ..pictures import ArrayLike, to_array
from ..style import COOL, INK, SMALL, WARM, axes_at, canvas, plain_chart


def draw_surprise(score: Number, reference: ArrayLike) -> Figure:
    """A histogram of the surprise of other images, in bits, and where this one stands among them."""
    others = to_array(reference)
    others = others[np.isfinite(others)]
    if not len(others):
        raise UserError("there are no reference images to compare with")
    figure = canvas(480, 230)  # pages show it in a column or on a telephone
    axes = axes_at(figure, (56, 30, 406, 150))
    plain_chart(axes, across="surprise of the tree, bits", unit="images")
    bins = min(41, max(9, len(others) // 8 | 1))  # odd: equal values fill the bar in the middle
    axes.hist(others, bins=bins, color=COOL, alpha=0.55, edgecolor="white")
    axes.yaxis.set_major_locator(MaxNLocator(4, integer=True))  # no ticks at half an image
    if np.isfinite(score):
        axes.axvline(float(score), color=WARM, linewidth=2.2)
        top = axes.get_ylim()[1]
        is_left = score > np.mean(axes.get_xlim())
        axes.text(
            float(score),
            top * 1.02,
            "this image ",
            ha="right" if is_left else "left",
            va="bottom",
            fontsize=SMALL + 1,
            color=INK,
            fontweight="bold",
        )
    return figure
