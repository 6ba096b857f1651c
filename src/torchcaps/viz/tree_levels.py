"""Trees of several levels beside the true one: for each capsule the region of the image it answers for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from numpy.typing import NDArray

from torchcaps.core import Number, UserError

from .pictures import Array, ArrayLike, place_picture, soften, to_colours
from .style import HEAT_MAP, INK, MUTED, QUIET, SMALL, TEXT, TITLE, canvas, drawing_board
from .text import literal
from .true_trees import NOWHERE, draw_legend, legend_height, name_colours, part_colour

_WIDTH, _LEFT, _MARGIN = 1000, 96, 16  # names of levels stand left of the trees
_IMAGE, _TRUE = 176, 480  # the image, and the width of the tree beside it
_HEAD, _STEP, _FOOT = 52, 44, 30  # above a tree, between two levels, and below
_LARGEST, _GAP = 52, 5  # a region, and the room between two
_NAME, _LETTER = 64, 6.4  # room for a name beside a small region, and the width of a letter
_PALE = 0.3  # how much of the image is seen below a region
_OPAQUE = 0.85  # how much a region covers it at its strongest place


@dataclass(frozen=True)
class Seen:
    """A capsule or a true node: its region, and what it stands for.

    Attributes:
        heat: (height, width), at least zero; hot in the drawing, or in the colour of a true node.
        stands_for: A part from 0 on, "several" parts together, or None for clutter and background.
        name: Beside its region.
        is_true: Whether it is a node of the true tree.
    """

    heat: NDArray[np.float64]
    stands_for: int | str | None
    name: str = ""
    is_true: bool = False

    @property
    def colour(self) -> str:
        """Of its frame and of the right lines that leave it."""
        if isinstance(self.stands_for, int):
            return part_colour(self.stands_for)
        return NOWHERE if self.stands_for is None else INK


class Link(NamedTuple):
    """An edge of a tree: from a place in one level to a place in the level above."""

    level: int
    child: int
    parent: int
    weight: float = 1.0
    is_right: bool = True


@dataclass(frozen=True)
class LevelTree:
    """One tree on one image: levels from the lowest to the root, the lines between them, and words."""

    levels: Sequence[Sequence[Seen]]
    links: Sequence[Link]
    words: str = ""
    level_names: Sequence[str] = ()


class _Frame(NamedTuple):
    """Where a tree stands, and how large its regions are."""

    left: Number
    top: Number
    width: Number
    side: Number
    levels: int

    @property
    def bottom(self) -> Number:
        return self.top + self.levels * self.side + (self.levels - 1) * _STEP

    def places(self, level: int, count: int) -> Iterator[tuple[float, float]]:
        """The upper left corners of the regions of a level."""
        y = self.top + (self.levels - 1 - level) * (self.side + _STEP)
        between = min(self.width / count, max(2.4 * self.side, self.side + _NAME))
        first = self.left + (self.width - between * count) / 2
        for number in range(count):
            yield float(first + between * (number + 0.5) - self.side / 2), float(y)


def draw_tree_levels(
    image: ArrayLike, trees: Mapping[str, LevelTree], *, part_names: Sequence[str]
) -> Figure:
    """The image with the first tree beside it, and the other trees below, each as wide as the figure.

    Args:
        image: (channels, height, width) or (height, width).
        trees: By title; the first is the true one.
        part_names: What is drawn in which colour.
    """
    if not trees:
        raise UserError("there are no trees to draw")
    (picture,) = to_colours(image[None])
    frames = _arrange(list(trees.values()))
    colours = name_colours(part_names, {"several parts": INK})
    figure = canvas(_WIDTH, frames[-1].bottom + _FOOT + 14 + legend_height(colours, _WIDTH))
    board = drawing_board(figure)
    board.text(_MARGIN, 24, "image", fontsize=TITLE, fontweight="bold", color=INK)
    place_picture(board, picture, (_MARGIN, _HEAD, _IMAGE, _IMAGE))
    for (title, tree), frame in zip(trees.items(), frames, strict=True):
        left = frame.left if tree is next(iter(trees.values())) else _MARGIN
        board.text(left, frame.top - 28, title, fontsize=TITLE, fontweight="bold", color=INK)
        board.text(left, frame.top - 11, literal(tree.words), fontsize=TEXT, color=MUTED)
        _draw_tree(board, picture, tree, frame)
    draw_legend(board, colours, frames[-1].bottom + _FOOT + 8, _WIDTH)
    return figure


def _arrange(trees: Sequence[LevelTree]) -> list[_Frame]:
    first, *others = trees
    left = _MARGIN + _IMAGE + 2 * _MARGIN
    frames = [_Frame(left, _HEAD, _TRUE, _side(first, _TRUE), len(first.levels))]
    top = max(frames[0].bottom + 14, _HEAD + _IMAGE) + _HEAD + 10
    for tree in others:
        width = _WIDTH - _LEFT - _MARGIN
        frames.append(_Frame(_LEFT, top, width, _side(tree, width), len(tree.levels)))
        top = frames[-1].bottom + _HEAD + 16
    return frames


def _side(tree: LevelTree, width: Number) -> Number:
    most = max(map(len, tree.levels))
    return min(_LARGEST, width / max(most, 1) - _GAP)


def _draw_tree(board: Axes, picture: Array, tree: LevelTree, frame: _Frame) -> None:
    places = [list(frame.places(number, len(level))) for number, level in enumerate(tree.levels)]
    for number, (level, corners) in enumerate(zip(tree.levels, places, strict=True)):
        for seen, (x, y) in zip(level, corners, strict=True):
            place_picture(board, _lit(picture, seen), (x, y, frame.side, frame.side))
            side = float(frame.side)
            board.add_patch(Rectangle((x, y), side, side, ec=seen.colour, lw=1.8, fill=False, zorder=3))
        _name_level(board, level, corners, frame.side, is_lowest=number == 0)
        if tree.level_names:
            y = corners[0][1] + frame.side / 2 if corners else frame.top
            board.text(_MARGIN, y, tree.level_names[number], fontsize=SMALL, color=MUTED, va="center")
    _draw_links(board, tree, places, frame.side)


def _name_level(
    board: Axes,
    level: Sequence[Seen],
    corners: Sequence[tuple[float, float]],
    side: Number,
    *,
    is_lowest: bool,
) -> None:
    """Names beside the regions, where no line is, or below the lowest; none where they would overlap."""
    between = corners[1][0] - corners[0][0] if len(corners) > 1 else float("inf")
    room = between if is_lowest else between - side - 6
    if _LETTER * max((len(seen.name) for seen in level), default=0) > room:
        return  # the legend has them by colour
    for seen, (x, y) in zip(level, corners, strict=True):
        place = (x + side / 2, y + side + 12) if is_lowest else (x + side + 6, y + side / 2)
        align = "center" if is_lowest else "left"
        board.text(*place, literal(seen.name), fontsize=SMALL, color=MUTED, ha=align)


def _lit(picture: Array, seen: Seen) -> Array:
    """The image, pale, and hot where the capsule answers for it."""
    above = seen.heat - seen.heat.min()
    share = above / max(float(above.max()), 1e-12)
    colours = np.array(to_rgb(seen.colour)) if seen.is_true else HEAT_MAP(share)[..., :3]
    opacity = _OPAQUE * share[..., None]
    return soften(picture, _PALE) * (1 - opacity) + opacity * colours


def _draw_links(
    board: Axes, tree: LevelTree, places: Sequence[Sequence[tuple[float, float]]], side: Number
) -> None:
    """Lines from the top of a child to the foot of its parent; right ones last, so that they lie above."""
    strongest = {
        level: max(link.weight for link in tree.links if link.level == level)
        for level in {link.level for link in tree.links}
    }
    links = sorted(tree.links, key=lambda link: link.is_right)
    lines, colours, widths = [], [], []
    for link in links:
        (x, y), (above, up) = places[link.level][link.child], places[link.level + 1][link.parent]
        lines.append([(x + side / 2, y), (above + side / 2, up + side)])
        colours.append(tree.levels[link.level][link.child].colour if link.is_right else QUIET)
        widths.append(0.4 + 2.2 * link.weight / (strongest[link.level] or 1.0))
    board.add_collection(
        LineCollection(lines, colors=colours, linewidths=widths, alpha=0.8, zorder=2), autolim=False
    )
