"""A tree of several routed layers, from the bottom to the top: image, one row for each layer, classes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from torchcaps.core import Number
from torchcaps.parse import ParseTree, ReceptiveField

from ..pictures import fit
from ..style import COOL, INK, MUTED, WARM, WARM_INK
from ..text import shorten, width_of
from .image import add_dots, add_field, add_links, places_on_image
from .legend import OUTSIDE, Legend
from .scene import (
    MARGIN,
    Key,
    Kind,
    Place,
    Scene,
    Words,
    activation_colour,
    circle,
    edge_stroke,
    shown_classes,
    title,
)
from .words import count_words, routing_caption, times_even, verdict

_WIDTH, _LEFT, _RIGHT = 780, 160, 764  # of the rows
_TOP, _STEP = 132, 72  # the classes, and from row to row
_IMAGE, _ABOVE_IMAGE, _LINKS = 160, 26, 40  # lines from the image need room above it
_LETTER, _FEWEST = 7.5, 4  # width of a letter, and letters below which names are left out
_WIDEST = 64  # layers with more capsules show those in the tree alone


@dataclass(frozen=True)
class RowPlaces:
    """Where the capsules of each layer stand; those of small layers have the same place in every tree."""

    tree: ParseTree
    middle: Number
    top: Number  # of the classes
    width: Number
    step: Number
    most: Number  # between two capsules

    @cached_property
    def shown(self) -> tuple[dict[int, int], ...]:
        """For each layer the capsules that are drawn, and which place of the row they have."""
        *hidden, last = (self._indices(layer) for layer in range(len(self.tree.layer_sizes)))
        rows = [*hidden, shown_classes(self.tree) if self.tree.layer_sizes[-1] > _WIDEST else last]
        return tuple({index: place for place, index in enumerate(row)} for row in rows)

    def _indices(self, layer: int) -> list[int]:
        """All capsules of a small layer, or those in the tree from left to right of what they see."""
        size = self.tree.layer_sizes[layer]
        if size <= _WIDEST:
            return list(range(size))
        nodes = self.tree.layer(layer)
        return [node.index for node in sorted(nodes, key=lambda node: (node.position or (0, 0, 0))[1])]

    def spacing(self, layer: int) -> Number:
        """Between two capsules of a layer."""
        return min(self.most, self.width / max(len(self.shown[layer]), 1))

    @cached_property
    def diameter(self) -> Number:
        """Of the capsules in the tree."""
        return min(14.0, 0.8 * min(self.spacing(layer) for layer in range(len(self.shown))))

    def height(self, layer: int) -> Number:
        """Where the row of a layer stands."""
        return self.top + (len(self.shown) - 1 - layer) * self.step

    def of(self, layer: int, index: int) -> Place:
        """The middle of a capsule."""
        row = self.shown[layer]
        offset = (row[index] - (len(row) - 1) / 2) * self.spacing(layer)
        return self.middle + offset, self.height(layer)


def add_rows(scene: Scene, places: RowPlaces) -> None:
    """Couplings, the capsules in the tree, those outside, and a ring around the chosen class."""
    tree = places.tree
    strokes = []
    for edge in tree.edges:
        ends = places.of(edge.layer, edge.child), places.of(edge.layer + 1, edge.parent)
        parents = tree.layer_sizes[edge.layer + 1]
        strokes.append(edge_stroke(edge, parents, ends, is_chosen=True)._replace(is_upright=True))
    scene.strokes += sorted(strokes, key=lambda stroke: stroke.width)  # the strongest on top
    inside = {(node.layer, node.index): node.activation for node in tree.nodes}
    last = len(tree.layer_sizes) - 1
    for layer, row in enumerate(places.shown):
        for index in row:
            key: Key = (layer, index)
            kind: Kind = "class" if layer == last else "capsule"
            shape = circle("outside", places.of(*key), 0.35 * places.diameter, fill=OUTSIDE, keys=(key,))
            if key in inside:
                fill = activation_colour(inside[key])
                shape = circle(kind, places.of(*key), places.diameter, fill=fill, keys=(key,))
                shape = shape._replace(edge=COOL, edge_width=0.8)
            scene.shapes.append(shape)
    root = (last, tree.chosen)
    ring = circle("class", places.of(*root), 1.5 * places.diameter, keys=(root,))
    scene.shapes.append(ring._replace(edge=WARM, edge_width=2.1))


def name_layers(scene: Scene, places: RowPlaces, counts: list[str], edges: list[str], right: Number) -> None:
    """Beside each row its name and a count; between two rows how far their couplings are from even."""
    last = len(counts) - 1
    for layer, count in enumerate(counts):
        y = places.height(layer)
        name = "classes" if layer == last else f"layer {layer + 1}"
        scene.words += [Words((MARGIN, y), name, 10.7), Words((right, y), count, 10.7, INK, align="right")]
    for layer, words in enumerate(edges):
        if words:
            y = places.height(layer) - places.step / 2
            scene.words.append(Words((right, y), words, 10.7, WARM_INK, align="right"))


def arrange_rows(
    tree: ParseTree,
    shape: tuple[int, ...],
    names: list[str],
    *,
    field: ReceptiveField | None,
    label: int | None,
) -> Scene:
    """Places of all parts."""
    middle = (_LEFT + _RIGHT) / 2
    places = RowPlaces(tree, middle, _TOP, _RIGHT - _LEFT, _STEP, most=64)
    top = places.height(0) + _ABOVE_IMAGE + (_LINKS if tree.grid else 0)
    box = fit(shape, (middle - _IMAGE / 2, top, _IMAGE, _IMAGE))
    scene = Scene(_WIDTH, 0, pictures=[box])
    on_image = places_on_image(tree, box, shape, field)
    add_links(scene, on_image, {key: places.of(*key) for key in on_image}, is_upright=True)
    add_rows(scene, places)
    if field is not None:
        add_field(scene, tree, box, shape, field)
    add_dots(scene, tree, on_image)
    edges = [times_even([tree], layer) for layer in range(len(tree.layer_sizes) - 1)]
    counts = [f"{here} of {size}" for here, size in zip(tree.capsules_in_tree, tree.layer_sizes, strict=True)]
    name_layers(scene, places, counts, edges, _LEFT - 30)
    _name_classes(scene, places, names)
    scene.words += [title((MARGIN, 30), verdict(tree, names, label)), Words((MARGIN, 54), count_words(tree))]
    _add_legend(scene, tree, box[1] + box[3] + 26, has_dots=bool(on_image), has_field=field is not None)
    scene.caption = routing_caption(tree, names)
    return scene


def _name_classes(scene: Scene, places: RowPlaces, names: list[str]) -> None:
    """Name and activation above each class, or above the chosen one where there is no room for all."""
    tree, last = places.tree, len(places.shown) - 1
    room = int(places.spacing(last) // _LETTER)
    for number in places.shown[last]:
        is_chosen = number == tree.chosen
        if not is_chosen and room < _FEWEST:
            continue
        x, y = places.of(last, number)
        name = shorten(names[number], room if room >= _FEWEST else 20)
        middle = min(x, _WIDTH - _LETTER * width_of(name) / 2)
        ink = INK if is_chosen else MUTED
        words = Words((middle, y - 42), name, 12, ink, is_chosen, "center", (last, number))
        value = words._replace(place=(middle, y - 25), text=f"{tree.class_activations[number]:.2f}")
        scene.words += [words, value]


def _add_legend(scene: Scene, tree: ParseTree, top: Number, *, has_dots: bool, has_field: bool) -> None:
    legend = Legend(scene, top)
    legend.activations()
    legend.couplings(tree)
    legend.outside(is_cut=tree.is_cut)
    if has_dots:
        legend.dots(has_field=has_field)
    scene.height = legend.bottom + 6
