"""A scene of parse trees as a matplotlib figure."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap

from matplotlib.axes import Axes
from matplotlib.collections import PatchCollection, PathCollection
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.patches import Circle, FancyBboxPatch, Patch
from matplotlib.path import Path

from torchcaps.parse import ParseTree, ReceptiveField

from ..pictures import Array, ArrayLike, place_picture, to_colours
from ..style import MUTED, WRONG, canvas, drawing_board
from ..text import drawable_labels, literal
from .arrange import arrange
from .scene import MARGIN, Scene, Shape

_POINT = 0.75  # points for a screen pixel


def draw_tree(
    image: ArrayLike,
    tree: ParseTree,
    *,
    field: ReceptiveField | None = None,
    class_names: Sequence[str] | None = None,
    label: int | None = None,
) -> Figure:
    """The image, the capsules that fired on it, and the class they were routed to.

    Width and colour of a coupling start at an even share of all parents: a network that hardly routes has
    thin grey lines, and the caption says so.

    Args:
        image: (channels, height, width) or (height, width).
        tree: From `torchcaps.parse.parse_tree`, with a grid if the capsules are to be marked on the image.
        field: Where the capsules of the grid look; without it they are spread evenly over the image.
        class_names: By default the class numbers.
        label: The true class, named beside the prediction.
    """
    names = drawable_labels(class_names, len(tree.class_activations))
    (colours,) = to_colours(image[None])
    return draw_scene(arrange(tree, colours.shape, names, field=field, label=label), [colours], alpha=0.85)


def draw_scene(scene: Scene, pictures: Sequence[Array], *, alpha: float = 1.0) -> Figure:
    """The scene with its pictures, and its caption below."""
    warning = wrap(scene.caption.warning, int(scene.width / 6.6))
    lines = wrap(scene.caption.text, int(scene.width / 6.0))
    height = scene.height + 17 * len(warning + lines) + (10 if lines else 0)
    figure = canvas(scene.width, height)
    board = drawing_board(figure)
    for box, colours in zip(scene.pictures, pictures, strict=True):
        place_picture(board, colours, box, alpha=alpha)
    _draw_strokes(board, scene)
    shapes = PatchCollection([_patch(shape) for shape in scene.shapes], match_original=True, zorder=5)
    board.add_collection(shapes, autolim=False)
    for place, text, size, colour, is_bold, align, _ in scene.words:
        weight = "bold" if is_bold else "normal"
        board.text(
            *place,
            literal(text),
            fontsize=_POINT * size,
            color=colour,
            fontweight=weight,
            ha=align,
            va="center_baseline",
        )
    for number, line in enumerate([*warning, *lines]):
        colour, weight = (WRONG, "bold") if number < len(warning) else (MUTED, "normal")
        y = scene.height + 4 + 17 * number
        board.text(
            MARGIN, y, literal(line), fontsize=8, color=colour, fontweight=weight, va="center_baseline"
        )
    return figure


def _draw_strokes(board: Axes, scene: Scene) -> None:
    codes = [Path.MOVETO, Path.CURVE4, Path.CURVE4, Path.CURVE4]
    strokes = PathCollection(
        [Path(stroke.curve, codes) for stroke in scene.strokes],
        facecolors="none",
        edgecolors=[to_rgba(stroke.colour, float(stroke.alpha)) for stroke in scene.strokes],
        linewidths=[_POINT * stroke.width for stroke in scene.strokes],
        capstyle="round",
        zorder=4,
    )
    board.add_collection(strokes, autolim=False)


def _patch(shape: Shape) -> Patch:
    left, top, width, height = shape.box
    if width == height == 2 * shape.radius:
        patch: Patch = Circle((left + shape.radius, top + shape.radius), shape.radius)
    else:
        patch = FancyBboxPatch((left, top), width, height, f"round,pad=0,rounding_size={shape.radius}")
    patch.set(facecolor=shape.fill, edgecolor=shape.edge, linewidth=_POINT * shape.edge_width)
    if shape.is_dashed:
        patch.set_linestyle((0, (4, 3)))
    return patch
