"""Parse trees of several networks, each above the image it is of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.path import Path
from numpy.typing import NDArray

from torchcaps.core.errors import UserError
from torchcaps.parse.tree import Edge, ParseTree

from .style import (
    COOL,
    COOL_MAP,
    INK,
    MUTED,
    SMALL,
    TITLE,
    WARM,
    WRONG,
    ArrayLike,
    Number,
    canvas,
    class_labels,
    drawing_board,
    place_picture,
    shorten,
    to_colour,
    to_pictures,
)

_LEFT, _COLUMN, _GAP = 148.0, 184.0, 14.0
_NAME, _STEP = 40.0, 52.0  # from the top of a row to its classes, and from layer to layer
_ABOVE_CLASSES = 21.0  # where names stand
_ABOVE_IMAGE, _IMAGE, _BELOW_IMAGE = 14.0, 60.0, 22.0
_LEGEND, _NARROWEST = 34.0, 710.0  # the legend's height and, for few images, its width
_DOT = "#c3c9df"


class Forest(NamedTuple):
    """The trees of one network, one for each image."""

    trees: Sequence[ParseTree]
    in_tree: Sequence[Number]  # capsules of each layer that are part of a tree, mean over any images


class _Place(NamedTuple):
    """Where the layers of a tree stand on the board: their middle, the classes' height, and the spacing."""

    middle: float
    top: float
    sizes: tuple[int, ...]

    @property
    def spacing(self) -> float:
        return _COLUMN / max(self.sizes)

    def height(self, layer: int) -> float:
        return self.top + (len(self.sizes) - 1 - layer) * _STEP

    def of(self, layer: int, index: int) -> tuple[float, float]:
        """A capsule has the same place in every tree of its network."""
        return self.middle + (index - (self.sizes[layer] - 1) / 2) * self.spacing, self.height(layer)


def draw_forest(
    images: ArrayLike,
    forests: Mapping[str, Forest],
    *,
    class_names: Sequence[str] | None = None,
    labels: Sequence[int] | None = None,
) -> Figure:
    """A row of trees for each network: layers from the image up to the class that was walked back from.

    Args:
        images: (n, channels, height, width) or (n, height, width), as in `to_pictures`.
        forests: By the name of the network.
        class_names: By default the class numbers.
        labels: True classes; a wrong prediction is then named in red.
    """
    pictures = to_pictures(images)
    _check(len(pictures), forests)
    heights = [_row_height(forest) for forest in forests.values()]
    width = max(_LEFT + len(pictures) * (_COLUMN + _GAP) + 6, _NARROWEST)
    figure = canvas(width, sum(heights) + _LEGEND)
    board = drawing_board(figure)
    colours = to_colour(pictures, pictures.ndim == 3)
    start = 0.0
    for (name, forest), height in zip(forests.items(), heights, strict=True):
        _name_row(board, name, forest, start)
        for column, tree in enumerate(forest.trees):
            place = _Place(_LEFT + column * (_COLUMN + _GAP) + _COLUMN / 2, start + _NAME, tree.layer_sizes)
            _draw_tree(board, tree, place)
            names = class_labels(class_names, len(tree.class_activations))
            _name_class(board, place, names, (tree.chosen, None if labels is None else labels[column]))
            box = (place.middle - _IMAGE / 2, place.height(0) + _ABOVE_IMAGE, _IMAGE, _IMAGE)
            place_picture(board, colours[column], box)
        start += height
    _draw_legend(board, start + _LEGEND / 2 - 4)
    return figure


def _check(count: int, forests: Mapping[str, Forest]) -> None:
    if not forests:
        raise UserError("there are no trees to draw")
    for name, (trees, in_tree) in forests.items():
        if len(trees) != count:
            raise UserError(f"{name}: {count} images need a tree each, got {len(trees)}")
        if {len(tree.layer_sizes) for tree in trees} != {len(in_tree)}:
            raise UserError(f"{name}: in_tree needs a number for each layer of the trees, got {len(in_tree)}")


def _row_height(forest: Forest) -> float:
    return _NAME + (len(forest.in_tree) - 1) * _STEP + _ABOVE_IMAGE + _IMAGE + _BELOW_IMAGE


def _name_row(board: Axes, name: str, forest: Forest, start: float) -> None:
    """The network, and beside each layer how many of its capsules are in a tree."""
    sizes = forest.trees[0].layer_sizes
    place = _Place(0.0, start + _NAME, sizes)
    board.text(
        14, place.top - _ABOVE_CLASSES, name, fontsize=TITLE, fontweight="bold", color=INK, va="center"
    )
    for layer, (size, mean) in enumerate(zip(sizes, forest.in_tree, strict=True)):
        what = "classes" if layer == len(sizes) - 1 else f"layer {layer + 1}"
        y = place.height(layer)
        board.text(14, y, what, fontsize=SMALL, color=MUTED, va="center")
        board.text(_LEFT - 20, y, f"{mean:.1f} of {size}", fontsize=SMALL, color=INK, va="center", ha="right")


def _draw_tree(board: Axes, tree: ParseTree, place: _Place) -> None:
    inside = {(node.layer, node.index): node.activation for node in tree.nodes}
    outside = [
        place.of(layer, index)
        for layer, size in enumerate(tree.layer_sizes)
        for index in range(size)
        if (layer, index) not in inside
    ]
    size = min(9.0, 0.8 * place.spacing)
    _scatter(board, outside, 0.35 * size, color=_DOT, linewidth=0, zorder=3)
    _draw_edges(board, tree.edges, place)
    colours = COOL_MAP(np.clip(list(inside.values()), 0, 1))
    points = [place.of(*key) for key in inside]
    _scatter(board, points, size, color=colours, edgecolor=COOL, linewidth=0.6, zorder=6)
    root = place.of(len(tree.layer_sizes) - 1, tree.chosen)
    _scatter(board, [root], 1.5 * size, color="none", edgecolor=WARM, linewidth=1.6, zorder=7)


def _scatter(board: Axes, points: Sequence[tuple[float, float]], size: Number, **style: Any) -> None:
    """Circles of a diameter in screen pixels; matplotlib wants the area in square points."""
    x, y = np.array(points).reshape(-1, 2).T
    board.scatter(x, y, s=(0.75 * size) ** 2, **style)


def _draw_edges(board: Axes, edges: Sequence[Edge], place: _Place) -> None:
    """Fuzzy strokes: a thin line in a wide faint one, both stronger with the coupling."""
    ordered = sorted(edges, key=lambda edge: edge.coupling)  # the strongest on top
    paths = [
        _curve(place.of(edge.layer, edge.child), place.of(edge.layer + 1, edge.parent)) for edge in ordered
    ]
    strength = np.array([edge.coupling for edge in ordered]).clip(0, 1)
    _stroke(board, paths, 1.5 + 5.0 * strength, 0.02 + 0.12 * strength)
    _stroke(board, paths, *_thin(strength))


def _thin(strength: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    return 0.35 + 2.0 * strength, 0.18 + 0.7 * strength


def _curve(start: tuple[float, float], end: tuple[float, float]) -> Path:
    bend = 0.45 * (end[1] - start[1])
    points = [start, (start[0], start[1] + bend), (end[0], end[1] - bend), end]
    return Path(points, [Path.MOVETO, Path.CURVE4, Path.CURVE4, Path.CURVE4])


def _stroke(board: Axes, paths: list[Path], widths: NDArray[np.float64], alphas: NDArray[np.float64]) -> None:
    colours = np.tile(to_rgba(WARM), (len(paths), 1))
    colours[:, 3] = alphas
    strokes = PathCollection(
        paths, facecolors="none", edgecolors=colours, linewidths=widths, capstyle="round", zorder=4
    )
    board.add_collection(strokes, autolim=False)


def _name_class(board: Axes, place: _Place, names: list[str], classes: tuple[int, int | None]) -> None:
    chosen, label = classes
    is_wrong = label is not None and label != chosen
    text = shorten(names[chosen], 11)
    if label is not None and is_wrong:
        text += f", not {shorten(names[label], 11)}"
    colour = WRONG if is_wrong else INK
    board.text(
        place.middle,
        place.top - _ABOVE_CLASSES,
        text,
        fontsize=TITLE - 1,
        fontweight="bold",
        color=colour,
        ha="center",
        va="center",
    )


def _draw_legend(board: Axes, y: float) -> None:
    style: dict[str, Any] = {"fontsize": SMALL, "color": MUTED, "va": "center"}
    board.text(14, y, "capsules in the tree, mean", **style)
    x = _LEFT + 30
    place_picture(board, COOL_MAP(np.linspace(0, 1, 64))[None, :, :3], (x, y - 5, 60, 10))
    board.text(x + 68, y, "activation 0 to 1", **style)
    x += 190
    strength = np.array([0.15, 0.5, 0.9])
    dashes = [Path([(x + 22 * number, y), (x + 22 * number + 14, y)]) for number in range(3)]
    _stroke(board, dashes, *_thin(strength))
    board.text(x + 70, y, "coupling 0.15, 0.5, 0.9", **style)
    _scatter(board, [(x + 224, y)], 3.2, color=_DOT, linewidth=0)
    board.text(x + 234, y, "not in the tree", **style)
