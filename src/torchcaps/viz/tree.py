"""The parse tree of an image: where capsules fired, and the couplings that led to the class."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch, PathPatch, Rectangle
from matplotlib.path import Path
from numpy.typing import NDArray

from torchcaps.parse import Edge, ParseTree, ReceptiveField

from .style import (
    COOL,
    COOL_MAP,
    INK,
    LINE,
    MUTED,
    PAPER,
    SMALL,
    TEXT,
    TILE,
    TITLE,
    WARM,
    ArrayLike,
    Number,
    canvas,
    class_labels,
    drawing_board,
    place_picture,
    shorten,
    soften,
    to_colour,
    to_pictures,
)
from .tree_layout import (
    CLASS_COLUMN,
    FIRST_COLUMN,
    HEIGHT,
    IMAGE,
    PILL,
    RIGHT,
    WIDTH,
    Point,
    TreeLayout,
    arrange_tree,
    arrival,
)


def draw_tree(
    image: ArrayLike,
    tree: ParseTree,
    *,
    field: ReceptiveField | None = None,
    class_names: Sequence[str] | None = None,
    label: int | None = None,
) -> Figure:
    """The image, the capsules that fired on it, and the class they were routed to.

    Args:
        image: (channels, height, width) or (height, width).
        tree: From `torchcaps.parse.parse_tree`, with a grid if the capsules are to be marked on the image.
        field: Where the capsules of the grid look; without it they are spread evenly over the image.
        class_names: By default the class numbers.
        label: The true class, named beside the prediction.
    """
    picture = to_pictures(image[None])[0]
    names = class_labels(class_names, len(tree.class_activations))
    figure = canvas(WIDTH, HEIGHT)
    board = drawing_board(figure)
    layout = arrange_tree(tree, picture.shape, field)
    _draw_image(board, picture)
    _draw_links(board, tree, layout)
    _draw_edges(board, tree, layout)
    _draw_capsules(board, tree, layout)
    _draw_dots(board, tree, layout)
    if field is not None:
        _draw_field(board, tree, layout, IMAGE[2] * field.size / picture.shape[0])
    _draw_classes(board, tree, layout, names)
    _write_headings(board, tree, names, label)
    _draw_legend(board, has_field=field is not None)
    return figure


def _draw_image(board: Axes, picture: NDArray[np.float64]) -> None:
    left, top, side = IMAGE
    colours = soften(to_colour(picture, picture.ndim == 2), 0.8)
    frame = FancyBboxPatch(
        (left, top), side, side, "round,pad=0,rounding_size=10", facecolor=TILE, edgecolor=LINE, linewidth=1
    )
    board.add_patch(frame)
    place_picture(board, colours, (left, top, side, side)).set_clip_path(frame)


def _curve(start: Point, end: Point) -> Path:
    bend = 0.5 * (end[0] - start[0])
    points = [start, (start[0] + bend, start[1]), (end[0] - bend, end[1]), end]
    return Path(points, [Path.MOVETO, Path.CURVE4, Path.CURVE4, Path.CURVE4])


def _stroke(board: Axes, path: Path, colour: str, width: Number, alpha: Number, zorder: Number) -> None:
    patch = PathPatch(
        path, fill=False, edgecolor=colour, linewidth=width, alpha=alpha, zorder=zorder, capstyle="round"
    )
    board.add_patch(patch)


def _draw_links(board: Axes, tree: ParseTree, layout: TreeLayout) -> None:
    largest = max((edge.contribution for edge in tree.edges if edge.layer == 0), default=1.0)
    for edge in tree.edges:
        key = (edge.layer, edge.child)
        if key in layout.dots:
            x, y = layout.capsules[key]
            strength = min(max(edge.contribution / max(largest, 1e-12), 0.0), 1.0)
            path = _curve(layout.dots[key], (x - PILL / 2, y))
            _stroke(board, path, COOL, 0.5 + 0.6 * strength, 0.15 + 0.45 * strength, 2)


def _draw_edges(board: Axes, tree: ParseTree, layout: TreeLayout) -> None:
    for edge in tree.alternatives:
        _draw_edge(board, edge, tree, layout, is_winning=False)
    for edge in reversed(tree.edges):  # the strongest on top
        _draw_edge(board, edge, tree, layout, is_winning=True)


def _draw_edge(board: Axes, edge: Edge, tree: ParseTree, layout: TreeLayout, *, is_winning: bool) -> None:
    end = arrival(edge, tree, layout)
    if end is None:
        return
    x, y = layout.capsules[edge.layer, edge.child]
    path = _curve((x + PILL / 2, y), end)
    strength = min(max(edge.coupling, 0.0), 1.0)
    if not is_winning:
        _stroke(board, path, COOL, 0.5 + 2.2 * strength, 0.18 + 0.5 * strength, 3)
        return
    _stroke(board, path, WARM, 2.0 + 6.0 * strength, 0.08 * strength, 4)
    _stroke(board, path, WARM, *_winning_stroke(strength), 5)


def _winning_stroke(strength: Number) -> tuple[float, float]:
    return 0.4 + 2.2 * strength, 0.25 + 0.6 * strength


def _pill(board: Axes, left: Number, middle: Number, size: Point, colour: object, zorder: Number = 6) -> None:
    width, height = size
    radius = min(height, width) / 2
    shape = FancyBboxPatch(
        (left, middle - height / 2),
        width,
        height,
        f"round,pad=0,rounding_size={radius}",
        facecolor=colour,
        edgecolor=PAPER,
        linewidth=1,
        zorder=zorder,
    )
    board.add_patch(shape)


def _draw_capsules(board: Axes, tree: ParseTree, layout: TreeLayout) -> None:
    height = min(14.0, 0.78 * layout.row_height)
    for node in tree.nodes:
        if (node.layer, node.index) in layout.capsules:
            x, y = layout.capsules[node.layer, node.index]
            _pill(board, x - PILL / 2, y, (PILL, height), COOL_MAP(min(max(node.activation, 0), 1)))


def _draw_dots(board: Axes, tree: ParseTree, layout: TreeLayout) -> None:
    """One marker for each position on the image, as large as the contributions of its capsules together."""
    totals: dict[Point, float] = {}
    for edge in tree.edges:
        if edge.layer == 0 and (0, edge.child) in layout.dots:
            dot = layout.dots[0, edge.child]
            totals[dot] = totals.get(dot, 0.0) + max(edge.contribution, 0.0)
    if not totals:
        return
    largest = max(*totals.values(), 1e-12)
    x, y = zip(*totals, strict=True)
    areas = [12 + 160 * total / largest for total in totals.values()]
    board.scatter(x, y, s=areas, color=WARM, alpha=0.9, edgecolor=PAPER, linewidth=1.2, zorder=7)


def _draw_field(board: Axes, tree: ParseTree, layout: TreeLayout, side: Number) -> None:
    """A frame around what the strongest capsule sees of the image."""
    strongest = [layout.dots[0, edge.child] for edge in tree.edges if (edge.layer, edge.child) in layout.dots]
    if not strongest:
        return
    x, y = strongest[0]  # edges of a layer come strongest first
    left, top, whole = IMAGE
    start = (max(x - side / 2, left), max(y - side / 2, top))
    end = (min(x + side / 2, left + whole), min(y + side / 2, top + whole))
    frame = FancyBboxPatch(
        start,
        end[0] - start[0],
        end[1] - start[1],
        "round,pad=0,rounding_size=6",
        fill=False,
        edgecolor=WARM,
        linewidth=1.1,
        linestyle=(0, (4, 3)),
        alpha=0.8,
        zorder=6,
    )
    board.add_patch(frame)


def _draw_classes(board: Axes, tree: ParseTree, layout: TreeLayout, names: list[str]) -> None:
    longest = max(len(names[number]) for number in layout.classes)
    start = CLASS_COLUMN + 22 + min(7.5 * longest, 80)
    room = RIGHT - 42 - start
    for number, y in layout.classes.items():
        length, is_chosen = tree.class_activations[number], number == tree.chosen
        colour, weight = (WARM, "bold") if is_chosen else (MUTED, "normal")
        board.scatter([CLASS_COLUMN], [y], s=34 if is_chosen else 14, color=colour, edgecolor=PAPER, zorder=7)
        style: dict[str, Any] = {
            "fontsize": TEXT + (2 if is_chosen else 0),
            "fontweight": weight,
            "va": "center_baseline",
        }
        ink = INK if is_chosen else MUTED
        board.text(CLASS_COLUMN + 12, y, shorten(names[number], 11), color=ink, **style)
        _pill(board, start, y, (room, 10), TILE)
        _pill(board, start, y, (max(room * min(length, 1.0), 5), 10), WARM if is_chosen else "#b9c0e4")
        board.text(RIGHT, y, f"{length:.2f}", color=ink, ha="right", **style)


def _write_headings(board: Axes, tree: ParseTree, names: list[str], label: int | None) -> None:
    is_predicted = tree.chosen == int(np.argmax(tree.class_activations))
    verdict = f"{'predicted' if is_predicted else 'explaining'} {shorten(names[tree.chosen], 9)}"
    if label is not None:
        verdict += f", true {shorten(names[label], 9)}"
    headings = (
        (IMAGE[0], "Image", "where capsules fired" if tree.grid else "what the network saw"),
        (FIRST_COLUMN - PILL / 2, "Capsules", _count_words(tree)),
        (CLASS_COLUMN, "Classes", verdict),
    )
    for x, title, below in headings:
        board.text(x, 38, title, fontsize=TITLE + 2, fontweight="bold", color=INK)
        board.text(x, 58, below, fontsize=TEXT, color=MUTED)


def _count_words(tree: ParseTree) -> str:
    drawn, in_tree = len(tree.layer(0)), tree.capsules_in_tree[0]
    words = f"{in_tree:,} of {tree.layer_sizes[0]:,} in the tree"
    return f"{words}, {drawn:,} drawn" if drawn < in_tree else words


def _draw_legend(board: Axes, *, has_field: bool) -> None:
    y = HEIGHT - 26
    board.scatter([38], [y], s=70, color=WARM, alpha=0.88, edgecolor=PAPER, linewidth=1.2)
    board.text(52, y, "activation times coupling", fontsize=SMALL, color=MUTED, va="center")
    if has_field:
        board.add_patch(Rectangle((208, y - 6), 12, 12, fill=False, edgecolor=WARM, linestyle=(0, (2, 1.5))))
        board.text(228, y, "seen by the strongest", fontsize=SMALL, color=MUTED, va="center")
    left = FIRST_COLUMN - PILL / 2
    place_picture(board, COOL_MAP(np.linspace(0, 1, 64))[None, :, :3], (left, y - 5, 60, 10))
    board.text(left + 68, y, "activation 0 to 1", fontsize=SMALL, color=MUTED, va="center")
    for number, strength in enumerate((0.15, 0.5, 0.9)):
        x = CLASS_COLUMN + 22 * number
        _stroke(board, Path([(x, y), (x + 14, y)]), WARM, *_winning_stroke(strength), 5)
    board.text(CLASS_COLUMN + 70, y, "coupling to the class", fontsize=SMALL, color=MUTED, va="center")
