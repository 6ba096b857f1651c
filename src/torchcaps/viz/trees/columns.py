"""A tree of one routed layer, from left to right: image, capsules, classes."""

from __future__ import annotations

from torchcaps.core import Number
from torchcaps.parse import ParseTree, ReceptiveField

from ..pictures import fit
from ..style import INK, LINE, MUTED, PAPER, QUIET, WARM
from ..text import shorten, width_of
from .image import add_dots, add_field, add_links, places_on_image
from .legend import Legend
from .scene import (
    MARGIN,
    Key,
    Place,
    Scene,
    Shape,
    Words,
    activation_colour,
    circle,
    edge_stroke,
    shown_classes,
    title,
)
from .words import count_words, routing_caption, verdict

_WIDTH, _TOP, _BOTTOM = 780, 88, 420  # the body lies between headings and legend
_IMAGE = (MARGIN, 134, 240, 240)
_CAPSULES, _CLASSES, _RIGHT = 344, 550, 762
_PILL = 30


def arrange_columns(
    tree: ParseTree,
    shape: tuple[int, ...],
    names: list[str],
    *,
    field: ReceptiveField | None,
    label: int | None,
) -> Scene:
    """Places of all parts; few lines cross."""
    box = fit(shape, _IMAGE)
    scene = Scene(_WIDTH, 0, pictures=[box])
    on_image = places_on_image(tree, box, shape, field)
    if field is not None:
        add_field(scene, tree, box, shape, field)
    add_dots(scene, tree, on_image)
    capsules = _add_capsules(scene, tree, on_image)
    classes = _add_classes(scene, tree, names)
    ends = {key: (x - _PILL / 2, y) for key, (x, y) in capsules.items()}
    add_links(scene, on_image, ends, is_upright=False)
    _add_edges(scene, tree, capsules, classes)
    _add_headings(scene, tree, names, label)
    _add_legend(scene, tree, has_dots=bool(on_image), has_field=field is not None)
    scene.caption = routing_caption(tree, names)
    return scene


def _spacing(count: int) -> float:
    return min(34.0, (_BOTTOM - _TOP) / max(count, 1))


def _spread(count: int) -> list[float]:
    middle = (_TOP + _BOTTOM) / 2
    return [middle + _spacing(count) * (number - (count - 1) / 2) for number in range(count)]


def _add_edges(scene: Scene, tree: ParseTree, capsules: dict[Key, Place], classes: dict[int, float]) -> None:
    """The strongest couplings to the chosen class on top."""
    drawn = [*((edge, False) for edge in tree.alternatives), *((edge, True) for edge in reversed(tree.edges))]
    for edge, is_chosen in drawn:
        if edge.parent in classes:
            x, y = capsules[0, edge.child]
            ends = (x + _PILL / 2, y), (_CLASSES, classes[edge.parent])
            scene.strokes.append(edge_stroke(edge, tree.layer_sizes[1], ends, is_chosen=is_chosen))


def _add_capsules(scene: Scene, tree: ParseTree, on_image: dict[Key, Place]) -> dict[Key, Place]:
    """From top to bottom in the order of what the capsules see; those below the middle from right to left."""

    def order(index: int) -> tuple[Number, Number, int]:
        x, y = on_image.get((0, index), (0, 0))
        return y, x if y < (_TOP + _BOTTOM) / 2 else -x, index

    nodes = tree.layer(0)
    indices = sorted((node.index for node in nodes), key=order)
    heights = zip(indices, _spread(len(nodes)), strict=True)
    places: dict[Key, Place] = {(0, index): (_CAPSULES, y) for index, y in heights}
    height = min(14.0, 0.78 * _spacing(len(nodes)))
    for node in nodes:
        x, y = places[0, node.index]
        box = (x - _PILL / 2, y - height / 2, _PILL, height)
        colour = activation_colour(node.activation)
        keys = ((0, node.index),)
        scene.shapes.append(Shape("capsule", box, height / 2, fill=colour, edge=PAPER, keys=keys))
    return places


def _add_classes(scene: Scene, tree: ParseTree, names: list[str]) -> dict[int, float]:
    """Draw name, bar and number of each class, the chosen one larger; return their heights."""
    shown = shown_classes(tree)
    classes = dict(zip(shown, _spread(len(shown)), strict=True))
    longest = max(width_of(names[number]) for number in classes)
    start = _CLASSES + 22 + min(8.4 * longest, 92)
    room = _RIGHT - 44 - start
    for number, y in classes.items():
        activation, is_chosen = tree.class_activations[number], number == tree.chosen
        colour, ink, size = (WARM, INK, 13.5) if is_chosen else (QUIET, MUTED, 12.0)
        key = (1, number)
        filled = max(room * min(max(activation, 0.0), 1.0), 5)
        scene.shapes += [
            circle("class", (_CLASSES, y), 9 if is_chosen else 6, fill=colour, keys=(key,)),
            Shape("class", (start, y - 5, room, 10), 5, fill=LINE, keys=(key,)),
            Shape("class", (start, y - 5, filled, 10), 5, fill=colour, keys=(key,)),
        ]
        words = Words((_CLASSES + 12, y), shorten(names[number], 11), size, ink, is_bold=is_chosen, key=key)
        value = words._replace(place=(_RIGHT, y), text=f"{activation:.2f}", align="right")
        scene.words += [words, value]
    return classes


def _add_headings(scene: Scene, tree: ParseTree, names: list[str], label: int | None) -> None:
    headings = (
        (_IMAGE[0], "Image", "where capsules fired" if tree.grid else "what the network saw"),
        (_CAPSULES - _PILL / 2, "Capsules", count_words(tree)),
        (_CLASSES, "Classes", verdict(tree, names, label)),
    )
    for x, heading, below in headings:
        scene.words += [title((x, 30), heading), Words((x, 54), below)]


def _add_legend(scene: Scene, tree: ParseTree, *, has_dots: bool, has_field: bool) -> None:
    legend = Legend(scene, _BOTTOM + 34)
    if has_dots:
        legend.dots(has_field=has_field)
    legend.activations()
    legend.couplings(tree, has_others=bool(tree.alternatives))
    scene.height = legend.bottom + 6
