"""What is said about a tree, beside its drawing."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from torchcaps.parse import Evenness, ParseTree

from ..text import format_share, join_words, shorten
from .scene import Caption

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
    """How many even shares couplings from a layer are, or their size if they are no split; the median."""
    couplings = [edge.coupling for tree in trees for edge in tree.edges if edge.layer == layer]
    if not couplings:
        return ""
    median = np.median(couplings)
    if not all(tree.is_split for tree in trees):
        return f"median {median:.2f}"
    return f"{median * trees[0].layer_sizes[layer + 1]:.1f} times even"


def routing_caption(tree: ParseTree, names: list[str]) -> Caption:
    """How far the couplings are from an even split, with a warning where the network hardly routes."""
    if not tree.evenness:
        return Caption()
    text = f"{_median(tree.evenness, names[tree.chosen])} {_doubled(tree.evenness)}"
    if not tree.is_split:
        text = f"{text} {_say_no_split(tree)}"
    if tree.is_quantized:
        text = f"{text} {_ROUNDED}"
    return Caption(text, _warning(tree.evenness))


def _say_no_split(tree: ParseTree) -> str:
    """What couplings are compared with, and which of them the tree has, where they do not split a capsule."""
    limits = join_words([format_share(threshold) for threshold in tree.thresholds])
    return (
        "Couplings of this routing do not add up to one and may be negative, so those of a capsule are "
        f"compared with their own mean. The tree has those above {limits}."
    )


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
    limits = join_words([format_share(shares / layer.parents) for layer in layers])
    return f"over {limits} more than they give on average"


def _doubled(layers: tuple[Evenness, ...]) -> str:
    """The capsules that give one parent far more than the others."""
    shares = [f"{layer.doubled:.0%}" for layer in layers]
    more = _say_more(layers, 1.0)
    if len(layers) == 1:
        return f"{shares[0]} of the capsules give a class {more}."
    numbers = "1 and 2" if len(layers) == 2 else f"1 to {len(layers)}"
    return f"In layers {numbers}, {join_words(shares)} of the capsules give a parent {more}."


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
