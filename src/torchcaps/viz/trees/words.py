"""What is said about a tree, beside its drawing."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from torchcaps.parse import Evenness, ParseTree

from ..text import format_share, join_words, shorten
from .scene import Caption

_NO_SPLIT = (
    "The couplings of this routing do not add up to one, so those of a capsule are compared with their mean; "
    "an even share is 1 / parents."
)
_ROUNDED = (
    "Couplings are drawn rounded to levels; class activations and these numbers are from before rounding."
)


def verdict(tree: ParseTree, names: list[str], label: int | None) -> str:
    """The class that the tree explains, and the true one if it is known."""
    is_predicted = tree.chosen == int(np.argmax(tree.class_activations))
    name = shorten(names[tree.chosen], 20 if label is None else 8)
    words = f"{'predicted' if is_predicted else 'explaining'} {name}"
    return words if label is None else f"{words}, true {shorten(names[label], 8)}"


def count_words(tree: ParseTree) -> str:
    """How many capsules of the first layer are in the tree, and how many are drawn."""
    drawn, in_tree = len(tree.layer(0)), tree.capsules_in_tree[0]
    words = f"{in_tree:,} of {tree.layer_sizes[0]:,} in the tree"
    return f"{words}, {drawn:,} drawn" if drawn < in_tree else words


def times_even(trees: Sequence[ParseTree], layer: int) -> str:
    """How many even shares the couplings of trees from one layer to the next are, in the median."""
    couplings = [edge.coupling for tree in trees for edge in tree.edges if edge.layer == layer]
    return f"{np.median(couplings) * trees[0].layer_sizes[layer + 1]:.1f} times even" if couplings else ""


def routing_caption(tree: ParseTree, names: list[str]) -> Caption:
    """How far the couplings are from an even split, with a warning where the network hardly routes."""
    if not tree.evenness:
        return Caption()
    text = f"{_median(tree.evenness, names[tree.chosen])} {_doubled(tree.evenness)}"
    if not _are_split(tree.evenness):
        text = f"{text} {_NO_SPLIT}"
    if tree.is_quantized:
        text = f"{text} {_ROUNDED}"
    return Caption(text, _warning(tree.evenness))


def _median(layers: tuple[Evenness, ...], name: str) -> str:
    """The median coupling beside an even one: to the class, or in deep trees to the strongest parent."""
    is_split = _are_split(layers)
    if len(layers) == 1:
        (layer,) = layers
        even = "an even share is" if is_split else "the mean of all couplings is"
        to_class = f"Median coupling to {shorten(name, 20)}: {layer.to_chosen:.3f}"
        return f"{to_class}; {even} {layer.mean:.3f}."
    even = "even shares" if is_split else "means of all couplings"
    largest = join_words([f"{layer.largest:.2f}" for layer in layers])
    means = join_words([format_share(layer.mean) for layer in layers])
    return f"Median coupling to the strongest parent, by layer: {largest}; {even} are {means}."


def _are_split(layers: tuple[Evenness, ...]) -> bool:
    return all(layer.is_split for layer in layers)


def _say_more(layers: tuple[Evenness, ...], shares: float) -> str:
    """What a capsule gives its strongest parent: so many even shares above the mean of its couplings."""
    if _are_split(layers):
        return f"more than {'twice' if shares == 1 else f'{1 + shares:g} times'} an even share"
    return f"more than their mean coupling plus {'an' if shares == 1 else f'{shares:g} of an'} even share"


def _doubled(layers: tuple[Evenness, ...]) -> str:
    """The capsules that give one parent far more than the others."""
    shares = [f"{layer.doubled:.0%}" for layer in layers]
    more = _say_more(layers, 1.0)
    if len(layers) == 1:
        return f"{shares[0]} of the capsules give a class {more}."
    return f"In layers 1 to {len(layers)}, {join_words(shares)} of the capsules give a parent {more}."


def _warning(layers: tuple[Evenness, ...]) -> str:
    idle = [str(number) for number, layer in enumerate(layers, 1) if layer.hardly_routes]
    if not idle:
        return ""
    more = _say_more(layers, 0.5)
    if len(layers) == 1:
        share = f"{layers[0].decided:.0%} of the capsules give a class"
        return f"This network hardly routes: on this image {share} {more}."
    who = "This network hardly routes"
    if len(idle) < len(layers):
        who = (
            f"Layer {idle[0]} hardly routes" if len(idle) == 1 else f"Layers {join_words(idle)} hardly route"
        )
    return f"{who}: fewer than 5% of the capsules give a parent {more}."
