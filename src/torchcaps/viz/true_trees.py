"""Carved trees beside the true one, drawn on the image they are of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure
from numpy.typing import NDArray

from torchcaps.core import Number, UserError

from .pictures import ArrayLike, to_colours
from .style import COOL, INK, MUTED, PAPER, TEXT, TITLE, WARM, WRONG, axes_at, canvas, drawing_board

_CELL, _GAP, _TOP, _LEFT = 190, 16, 44, 16
_BELOW = 30  # pixels of words under a picture
_ROW = 20  # of the names of colours
NOWHERE = MUTED
_PARTS = (COOL, WARM, "#1f8a78", WRONG, "#8a5cd6", "#b58a00", "#1d9fc4", "#6f8f1f", "#c65b9b")


def part_colour(part: int) -> str:
    """The colour in which a part is drawn: one of nine, and for further parts darker and paler ones."""
    turn, number = divmod(part, len(_PARTS))
    other, share = (("black", 0.0), ("black", 0.4), ("white", 0.4))[turn % 3]
    return to_hex((1 - share) * np.array(to_rgb(_PARTS[number])) + share * np.array(to_rgb(other)))


@dataclass(frozen=True)
class Branch:
    """An edge of a tree on the image: from a place to the root.

    Attributes:
        x: Column of the child, in pixels.
        y: Row of the child.
        part: Number of the part there, from 0; None for clutter and background.
        weight: Thickness, as a share of the strongest.
    """

    x: float
    y: float
    part: int | None
    weight: float = 1.0


@dataclass(frozen=True)
class TreeOnImage:
    """One tree on one image, and the words below it."""

    branches: Sequence[Branch]
    root: tuple[float, float]  # x and y in pixels
    words: str = ""


def draw_true_trees(
    images: ArrayLike, trees: Sequence[Mapping[str, TreeOnImage]], *, part_names: Sequence[str]
) -> Figure:
    """A row for each image: the image, and a tree on it for each title.

    Args:
        images: (n, channels, height, width) or (n, height, width).
        trees: For each image the trees by title, the same titles for all.
        part_names: What is drawn in which colour; all else is grey.
    """
    colours = to_colours(images)
    if len(colours) != len(trees) or not trees:
        raise UserError(f"{len(colours)} images need as many rows of trees, got {len(trees)}")
    titles = ["image", *trees[0]]
    width = _LEFT + len(titles) * (_CELL + _GAP)
    colours_of = name_colours(part_names)
    bottom = _TOP + len(trees) * (_CELL + _BELOW)
    figure = canvas(width, bottom + 14 + legend_height(colours_of, width))
    board = drawing_board(figure)
    for column, title in enumerate(titles):
        at = _LEFT + column * (_CELL + _GAP)
        board.text(at, _TOP - 14, title, fontsize=TITLE, fontweight="bold", color=INK)
    for row, (picture, found) in enumerate(zip(colours, trees, strict=True)):
        top = _TOP + row * (_CELL + _BELOW)
        _show(figure, picture, (_LEFT, top))
        for column, tree in enumerate(found.values(), start=1):
            left = _LEFT + column * (_CELL + _GAP)
            _draw_tree(_show(figure, picture, (left, top), faded=True), tree)
            board.text(left, top + _CELL + 16, tree.words, fontsize=TEXT, color=MUTED)
    draw_legend(board, colours_of, bottom + 16, width)
    return figure


def _show(
    figure: Figure, picture: NDArray[np.float64], corner: tuple[int, int], *, faded: bool = False
) -> Axes:
    axes = axes_at(figure, (*corner, _CELL, _CELL))
    height, width = picture.shape[:2]
    shown = 0.65 + 0.35 * picture if faded else picture
    axes.imshow(shown, extent=(0, width, height, 0), interpolation="nearest")
    axes.set(xlim=(0, width), ylim=(height, 0))
    axes.set_axis_off()
    return axes


def _draw_tree(axes: Axes, tree: TreeOnImage) -> None:
    strongest = max((branch.weight for branch in tree.branches), default=1.0) or 1.0
    branches = sorted(tree.branches, key=lambda each: each.part is not None)
    colours = [NOWHERE if each.part is None else part_colour(each.part) for each in branches]
    widths = [0.5 + 2.0 * each.weight / strongest for each in branches]
    lines = [[(each.x, each.y), tree.root] for each in branches]
    # all at once: a line object for each takes longer than all the rest
    axes.add_collection(
        LineCollection(lines, colors=colours, linewidths=widths, alpha=0.7, capstyle="projecting", zorder=2)
    )
    x, y = [each.x for each in branches], [each.y for each in branches]
    areas = [(4 + width) ** 2 for width in widths]
    axes.scatter(x, y, areas, colours, edgecolors=PAPER, linewidths=1, zorder=3)
    axes.plot(
        [tree.root[0]], [tree.root[1]], marker="s", markersize=9, color=INK, markeredgecolor=PAPER, zorder=5
    )


def name_colours(names: Sequence[str], others: Mapping[str, str] | None = None) -> dict[str, str]:
    """Which colour stands for which part, and for what else."""
    parts = {name: part_colour(number) for number, name in enumerate(names)}
    return {**parts, **(others or {}), "clutter or background": NOWHERE}


def legend_height(colours: Mapping[str, str], width: Number) -> int:
    """Pixels that the names of colours take in a figure of so many."""
    return _ROW * -(-len(colours) // _in_row(colours, width))


def _in_row(colours: Mapping[str, str], width: Number) -> int:
    return max(1, int((width - _LEFT) // _column(colours)))


def _column(colours: Mapping[str, str]) -> int:
    return 30 + 63 * max(map(len, colours)) // 10


def draw_legend(board: Axes, colours: Mapping[str, str], top: Number, width: Number) -> None:
    """Names of colours in as many rows as they need."""
    for number, (name, colour) in enumerate(colours.items()):
        row, column = divmod(number, _in_row(colours, width))
        x, y = _LEFT + _column(colours) * column, top + _ROW * row
        board.plot([x + 5], [y], marker="o", markersize=7, color=colour)
        board.text(x + 16, y + 4, name, fontsize=TEXT, color=MUTED)
