"""One slice with what was found on it: where it is, and close up without and with its outline."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, UInt8
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from .style import HEAT_MAP, INK, MUTED, SMALL, TITLE, WARM, axes_at, canvas

_SIDE, _GAP, _TOP, _BOTTOM = 300, 14, 44, 30
_REACH = 32  # pixels from the middle of a close-up to its edges
_HIDDEN = 0.05  # of the strongest heat: below it the slice is seen as it is


@dataclass(frozen=True, kw_only=True)
class SliceDetail:
    """What is drawn.

    Attributes:
        grey: The slice.
        mask: What was found on it.
        heat: Evidence on the same pixels, drawn in a panel of its own; None for no such panel.
        centre: Row and column of the close-up.
        aspect: Height of a pixel over its width.
        title: Above the panels.
        caption: Below them.
        heat_title: Above the panel of the evidence.
    """

    grey: UInt8[np.ndarray, "rows columns"]
    mask: Bool[np.ndarray, "rows columns"]
    heat: Float[np.ndarray, "rows columns"] | None
    centre: tuple[float, float]
    aspect: float
    title: str
    caption: str
    heat_title: str


def draw_slice_detail(detail: SliceDetail) -> Figure:
    """Three panels: the slice, the close-up, and the close-up with outlines; a fourth where there is heat."""
    panels = 3 if detail.heat is None else 4
    width = panels * _SIDE + (panels + 1) * _GAP
    figure = canvas(width, _TOP + _SIDE + _BOTTOM)
    axes = [axes_at(figure, (_GAP + number * (_SIDE + _GAP), _TOP, _SIDE, _SIDE)) for number in range(panels)]
    for each in axes:
        each.imshow(detail.grey, cmap="gray", vmin=0, vmax=255, aspect=detail.aspect)
        each.set_axis_off()
    for each in axes[1:]:
        _zoom(each, detail)
    _outline(axes[0], detail.mask)
    _outline(axes[2], detail.mask)
    _frame(axes[0], detail)
    if detail.heat is not None:
        _show_heat(axes[3], detail.heat)
        axes[3].set_title(detail.heat_title, fontsize=SMALL, color=MUTED, pad=4)
    figure.text(_GAP / width, 0.965, detail.title, fontsize=TITLE, color=INK, va="top", fontweight="bold")
    figure.text(_GAP / width, 0.03, detail.caption, fontsize=SMALL, color=MUTED)
    return figure


def _zoom(axes: Axes, detail: SliceDetail) -> None:
    row, column = detail.centre
    axes.set(xlim=(column - _REACH, column + _REACH), ylim=(row + _REACH, row - _REACH))


def _outline(axes: Axes, mask: Bool[np.ndarray, "rows columns"]) -> None:
    """Lines between pixels that belong and pixels that do not."""
    if mask.any() and not mask.all():
        axes.contour(mask.astype(float), levels=[0.5], colors=[WARM], linewidths=1.3)


def _frame(axes: Axes, detail: SliceDetail) -> None:
    row, column = detail.centre
    corner = (column - _REACH, row - _REACH)
    axes.add_patch(Rectangle(corner, 2 * _REACH, 2 * _REACH, fill=False, edgecolor="white", linewidth=0.8))
    height, width = detail.grey.shape
    axes.set(xlim=(-0.5, width - 0.5), ylim=(height - 0.5, -0.5))


def _show_heat(axes: Axes, heat: Float[np.ndarray, "rows columns"]) -> None:
    strongest = max(float(heat.max()), 1e-12)
    share = np.clip(heat / strongest, 0, 1)
    colours = HEAT_MAP(share)
    colours[..., 3] = np.where(share > _HIDDEN, 0.25 + 0.5 * share, 0)
    axes.imshow(colours, aspect=axes.get_aspect())
