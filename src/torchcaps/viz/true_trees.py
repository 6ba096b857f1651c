"""Carved trees beside the true one, drawn on the image they are of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from numpy.typing import NDArray

from torchcaps.core import Number, UserError

from .pictures import ArrayLike, to_colours
from .style import COOL, INK, MUTED, PAPER, TEXT, TITLE, WARM, WRONG, axes_at, canvas, drawing_board

_CELL, _GAP, _TOP, _LEFT = 190, 16, 44, 16
_BELOW = 30  # pixels of words under a picture
NOWHERE = MUTED
_PARTS = (COOL, WARM, "#1f8a78", WRONG, "#8a5cd6", "#b58a00", "#1d9fc4", "#6f8f1f", "#c65b9b")


def part_colour(part: int) -> str:
    """The colour in which a part is drawn."""
    return _PARTS[part % len(_PARTS)]


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
    figure = canvas(width, _TOP + len(trees) * (_CELL + _BELOW) + 34)
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
    name_parts(board, part_names, _TOP + len(trees) * (_CELL + _BELOW) + 16, width)
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


def name_parts(
    board: Axes, names: Sequence[str], y: Number, width: Number, others: Mapping[str, str] | None = None
) -> None:
    """A row that says which colour stands for which part, and for what else."""
    colours = {name: part_colour(number) for number, name in enumerate(names)}
    colours |= {**(others or {}), "clutter or background": NOWHERE}
    step = min(120, (width - _LEFT - 140) / max(len(colours) - 1, 1))  # the last name is the longest
    for number, (name, colour) in enumerate(colours.items()):
        x = _LEFT + step * number
        board.plot([x + 5], [y], marker="o", markersize=7, color=colour)
        board.text(x + 16, y + 4, name, fontsize=TEXT, color=MUTED)
