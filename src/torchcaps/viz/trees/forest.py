"""Parse trees of several networks, each above the image it is of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from matplotlib.figure import Figure

from torchcaps.core import Number, UserError
from torchcaps.parse import ParseTree

from ..pictures import ArrayLike, fit, to_colours
from ..style import INK, WRONG
from ..text import drawable_labels, shorten
from .figure import draw_scene
from .legend import Legend
from .rows import RowPlaces, add_rows, name_layers
from .scene import MARGIN, Scene, Words, title
from .words import times_even

_LEFT, _COLUMN, _GAP = 148, 184, 14
_NAME, _STEP = 40, 52  # from the top of a network to its classes, and from layer to layer
_ABOVE_CLASSES = 21  # where names stand
_ABOVE_IMAGE, _IMAGE, _BELOW_IMAGE = 14, 60, 22
_NARROWEST = 760


class Forest(NamedTuple):
    """The trees of one network, one for each image."""

    trees: Sequence[ParseTree]
    in_tree: Sequence[Number]  # capsules of each layer that are part of a tree, mean over any images


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
    colours = to_colours(images)
    _check(len(colours), forests)
    names = drawable_labels(class_names, len(next(iter(forests.values())).trees[0].class_activations))
    scene = arrange_forest(colours.shape[1:], forests, names, labels)
    return draw_scene(scene, [*colours] * len(forests))


def arrange_forest(
    shape: tuple[int, ...], forests: Mapping[str, Forest], names: list[str], labels: Sequence[int] | None
) -> Scene:
    """Places of all trees, each above an image of `shape` (height, width, ...)."""
    count = max(len(forest.trees) for forest in forests.values())
    scene = Scene(max(_LEFT + count * (_COLUMN + _GAP) + 6, _NARROWEST), 0)
    for name, forest in forests.items():
        _add_network(scene, name, forest)
        for column, tree in enumerate(forest.trees):
            places = _places(tree, column, scene.height)
            label = None if labels is None else labels[column]
            _add_tree(scene, places, shape, _name_class(names, tree.chosen, label))
        scene.height += _NAME + (len(forest.in_tree) - 1) * _STEP + _ABOVE_IMAGE + _IMAGE + _BELOW_IMAGE
    legend = Legend(scene, scene.height + 4)
    legend.activations()
    legend.couplings(tree)
    legend.outside(is_cut=any(tree.is_cut for forest in forests.values() for tree in forest.trees))
    legend.note("left: capsules in a tree, mean; couplings in even shares, median")
    scene.height = legend.bottom + 8
    return scene


def _check(count: int, forests: Mapping[str, Forest]) -> None:
    if not forests:
        raise UserError("there are no trees to draw")
    for name, (trees, in_tree) in forests.items():
        if len(trees) != count:
            raise UserError(f"{name}: {count} images need a tree each, got {len(trees)}")
        if {len(tree.layer_sizes) for tree in trees} != {len(in_tree)}:
            raise UserError(f"{name}: in_tree needs a number for each layer of the trees, got {len(in_tree)}")


def _places(tree: ParseTree, column: int, top: Number) -> RowPlaces:
    middle = _LEFT + column * (_COLUMN + _GAP) + _COLUMN / 2
    return RowPlaces(tree, middle, top + _NAME, _COLUMN, _STEP, most=_COLUMN / max(tree.layer_sizes))


def _add_network(scene: Scene, name: str, forest: Forest) -> None:
    """Its name, how many capsules of each layer are in a tree, and how far couplings are from even."""
    places = _places(forest.trees[0], 0, scene.height)
    scene.words.append(title((MARGIN, places.top - _ABOVE_CLASSES), name))
    sizes = forest.trees[0].layer_sizes
    counts = [f"{mean:.1f} of {size}" for mean, size in zip(forest.in_tree, sizes, strict=True)]
    edges = [times_even(forest.trees, layer) for layer in range(len(sizes) - 1)]
    name_layers(scene, places, counts, edges, _LEFT - 20)


def _add_tree(scene: Scene, places: RowPlaces, shape: tuple[int, ...], name: tuple[str, str]) -> None:
    add_rows(scene, places)
    box = (places.middle - _IMAGE / 2, places.height(0) + _ABOVE_IMAGE, _IMAGE, _IMAGE)
    scene.pictures.append(fit(shape, box))
    text, colour = name
    scene.words.append(
        Words((places.middle, places.top - _ABOVE_CLASSES), text, 13.3, colour, is_bold=True, align="center")
    )


def _name_class(names: list[str], chosen: int, label: int | None) -> tuple[str, str]:
    """The words above a tree and their colour."""
    if label is None or label == chosen:
        return shorten(names[chosen], 11), INK
    return f"{shorten(names[chosen], 11)}, not {shorten(names[label], 11)}", WRONG
