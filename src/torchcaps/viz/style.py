"""The look that all drawings share: palette, text sizes, and a canvas measured in screen pixels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from io import BytesIO, StringIO
from typing import Any

from matplotlib import rc_context
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure

from torchcaps.core import Number

PAPER = "#ffffff"
INK = "#1c2045"
MUTED = "#6a7094"
LINE = "#dde1ee"
TILE = "#f2f4fb"
QUIET = "#b9c0e4"  # bars and dots beside the one that matters
COOL = "#4c5fd7"
WARM = "#f0742b"
WARM_INK = "#b94c0b"  # of small text, which is hard to read in `WARM` on white
WRONG = "#c81e4f"
SERIES = (COOL, WARM, "#1f8a78", "#8d93b3", WRONG, INK)  # curves and bars of one chart, in this order

INK_MAP = LinearSegmentedColormap.from_list("ink", [TILE, "#9aa1c9", INK])
COOL_MAP = LinearSegmentedColormap.from_list("cool", ["#e3e7fa", "#8793e6", COOL, "#27309a"])
HEAT_MAP = LinearSegmentedColormap.from_list("heat", ["#ffd166", WARM, "#d3264f"])

TITLE, TEXT, SMALL = 11.0, 9.0, 8.0  # points
SCREEN_DPI = 96
Box = tuple[Number, Number, Number, Number]  # left, top, width, height in screen pixels


def canvas(width: Number, height: Number) -> Figure:
    """An empty figure of that many screen pixels, bound to no window and no global state."""
    return Figure(figsize=(width / SCREEN_DPI, height / SCREEN_DPI), dpi=SCREEN_DPI, facecolor=PAPER)


def pixel_size(figure: Figure) -> tuple[float, float]:
    """Width and height of a figure in screen pixels."""
    width, height = figure.get_size_inches() * SCREEN_DPI
    return float(width), float(height)


def axes_at(figure: Figure, box: Box) -> Axes:
    """Axes at a place of the figure, measured from the top left corner."""
    width, height = pixel_size(figure)
    left, top, across, down = box
    return figure.add_axes((left / width, 1 - (top + down) / height, across / width, down / height))


def write_at(figure: Figure, place: tuple[Number, Number], text: str, **look: Any) -> None:
    """Text at a place of the figure, measured from the top left corner."""
    width, height = pixel_size(figure)
    figure.text(place[0] / width, 1 - place[1] / height, text, **look)


def write_beside(
    axes: Axes, place: tuple[Number, Number], offset: tuple[Number, Number], text: str, **look: Any
) -> None:
    """Small text in a chart, so many points to the right of a place of its scales and above it."""
    look = {"fontsize": SMALL, "color": MUTED, **look}
    axes.annotate(text, place, offset, textcoords="offset points", **look)


def drawing_board(figure: Figure) -> Axes:
    """Bare axes over the whole figure whose units are screen pixels, y downwards."""
    width, height = pixel_size(figure)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, width), ylim=(height, 0), aspect="auto")
    axes.set_axis_off()
    return axes


def plain_chart(axes: Axes, title: str = "", *, across: str = "", unit: str = "") -> None:
    """Muted ticks, no frame but a base line, light horizontal rules, and the words of the chart."""
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.spines["bottom"].set_color(LINE)
    axes.tick_params(length=0, labelsize=TEXT, labelcolor=MUTED, pad=5)
    axes.grid(axis="y", color=LINE, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.set_facecolor(PAPER)
    axes.set_title(title, loc="left", fontsize=TITLE, fontweight="bold", color=INK, pad=12)
    axes.set_xlabel(across, fontsize=TEXT, color=MUTED)
    axes.set_ylabel(unit, fontsize=TEXT, color=MUTED)


def legend_columns(names: Sequence[str], width: Number) -> int:
    """How many names fit side by side into a legend of so many pixels."""
    widest = max(map(len, names)) * 0.62 * TEXT * SCREEN_DPI / 72 + 52
    return max(1, min(len(names), int(width // widest)))


def name_marks(figure: Figure, marks: Mapping[str, Artist], *, place: str = "lower center") -> None:
    """One legend for the whole figure, in as many rows as it needs: which mark has which name."""
    figure.legend(
        list(marks.values()),
        list(marks),
        frameon=False,
        fontsize=TEXT,
        labelcolor=INK,
        loc=place,
        ncols=legend_columns(list(marks), figure.get_figwidth() * SCREEN_DPI),
        handletextpad=0.4,
        columnspacing=1.2,
    )


def to_png(figure: Figure, scale: Number = 2) -> bytes:
    """The figure as PNG, `scale` image pixels for each screen pixel."""
    buffer = BytesIO()
    figure.savefig(
        buffer,
        format="png",
        dpi=SCREEN_DPI * scale,
        facecolor=figure.get_facecolor(),
        metadata={"Software": None},  # the same drawing gives the same bytes under any version
        pil_kwargs={"optimize": True},
    )
    return buffer.getvalue()


def to_svg(figure: Figure) -> str:
    """The figure as SVG text, the same for the same drawing; letters are kept as letters."""
    buffer = StringIO()
    with rc_context({"svg.hashsalt": "torchcaps", "svg.fonttype": "none"}):
        figure.savefig(buffer, format="svg", facecolor=figure.get_facecolor(), metadata={"Date": None})
    return buffer.getvalue()
