"""Where the capsules of a parse tree stand on the board, in screen pixels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from torchcaps.parse import Edge, Node, ParseTree, ReceptiveField

from .style import Number

Point = tuple[Number, Number]
Key = tuple[int, int]  # layer, index

WIDTH, HEIGHT = 900, 500
_TOP, _BOTTOM = 92, 440  # of the body, between headings and legend
IMAGE = (28.0, 126.0, 280.0)  # left, top, side
FIRST_COLUMN, CLASS_COLUMN, RIGHT = 412.0, 662.0, 872.0
_MOST_CLASSES = 12
PILL = 30.0


@dataclass(frozen=True)
class TreeLayout:
    """Where things stand on the board, in screen pixels."""

    capsules: dict[Key, Point]
    classes: dict[int, float]  # class -> y
    dots: dict[Key, Point]  # primary capsule -> centre of its receptive field
    row_height: float


def arrange_tree(tree: ParseTree, shape: tuple[int, ...], field: ReceptiveField | None) -> TreeLayout:
    """Places of all capsules of a tree beside an image of `shape` (height, width); few lines cross."""
    dots = {
        (0, node.index): _on_image(node.position, tree, shape, field)
        for node in tree.layer(0)
        if node.position is not None
    }
    num_layers = len(tree.layer_sizes) - 1
    step = (CLASS_COLUMN - FIRST_COLUMN) / num_layers
    capsules: dict[Key, Point] = {}
    spacings = []
    for number in range(num_layers):
        nodes = sorted(tree.layer(number), key=lambda node: _height_order(node, tree, {**dots, **capsules}))
        heights, spacing = _spread(len(nodes))
        spacings.append(spacing)
        x = FIRST_COLUMN + number * step
        capsules |= {(number, node.index): (x, y) for node, y in zip(nodes, heights, strict=True)}
    shown = _shown_classes(tree)
    classes = dict(zip(shown, _spread(len(shown))[0], strict=True))
    return TreeLayout(capsules, classes, dots, min(spacings, default=30.0))


def _on_image(
    position: tuple[int, int, int], tree: ParseTree, shape: tuple[int, ...], field: ReceptiveField | None
) -> Point:
    left, top, side = IMAGE
    rows, columns, _ = tree.grid or (1, 1, 1)
    row, column, _ = position
    if field is None:
        return left + side * (column + 0.5) / columns, top + side * (row + 0.5) / rows
    y, x = (centre + 0.5 for centre in field.centre(row, column))  # from the edge of the image
    return left + side * x / shape[1], top + side * y / shape[0]


def _height_order(node: Node, tree: ParseTree, placed: dict[Key, Point]) -> tuple[float, float, int]:
    """Sorts a column so that few lines cross: by place on the image, or by the mean height of children."""
    if node.layer == 0 and (0, node.index) in placed:
        x, y = placed[0, node.index]
        return y, x if y < (_TOP + _BOTTOM) / 2 else -x, node.index
    below = [
        placed[edge.layer, edge.child][1]
        for edge in tree.edges
        if (edge.layer + 1, edge.parent) == (node.layer, node.index)
    ]
    return float(np.mean(below)) if below else 0.0, 0.0, node.index


def _spread(count: int) -> tuple[list[float], float]:
    spacing = min(34.0, (_BOTTOM - _TOP) / max(count, 1))
    middle = (_TOP + _BOTTOM) / 2
    return [middle + spacing * (number - (count - 1) / 2) for number in range(count)], spacing


def _shown_classes(tree: ParseTree) -> list[int]:
    strongest = np.argsort(-np.array(tree.class_activations), kind="stable")[:_MOST_CLASSES].tolist()
    if tree.chosen not in strongest:
        strongest[-1] = tree.chosen
    return sorted(strongest)


def arrival(edge: Edge, tree: ParseTree, layout: TreeLayout) -> Point | None:
    """Where a coupling ends; None where its parent is not shown."""
    if edge.layer == len(tree.layer_sizes) - 2:
        y = layout.classes.get(edge.parent)
        return None if y is None else (CLASS_COLUMN, y)
    place = layout.capsules.get((edge.layer + 1, edge.parent))
    return None if place is None else (place[0] - PILL / 2, place[1])
