"""Trees of several levels as plain data for a drawing: regions of capsules, and which lines are right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from jaxtyping import Int64
from torch import Tensor

from torchcaps.core import LayerTrace
from torchcaps.data import PartWhole
from torchcaps.parse import ParseTree, Regions, parse_tree, weights_of_levels
from torchcaps.parse.truth import TrueTree, judge_edges, parts_looked_at
from torchcaps.viz import LevelTree, Link, Seen, to_array


@dataclass(frozen=True)
class CarvedLevels:
    """The carved trees of one image.

    Attributes:
        regions: Of the first capsules on this image.
        owners: What these look at.
        truth: The true tree.
        top: Lines that are kept of each level.
    """

    regions: Regions
    owners: Int64[Tensor, " capsules"]
    truth: TrueTree
    top: int

    def of(self, layers: Sequence[LayerTrace], sample: int, size: tuple[int, int], words: str) -> LevelTree:
        """The tree of these layers, with the region of each of its capsules on an image of `size`."""
        tree = parse_tree(layers, sample=sample, threshold=0.0, top=self.top)
        judged = judge_edges(tree.edges, parts_looked_at(self.owners, self.truth), self.truth)
        levels = []
        for number, weights in enumerate(weights_of_levels(layers, sample)):
            indices = [node.index for node in tree.layer(number)]
            heats = self.regions.on_image(weights[indices], size)
            levels.append(
                [
                    Seen(to_array(heat), self._meaning(judged.node_of(number, index)))
                    for heat, index in zip(heats, indices, strict=True)
                ]
            )
        right = {(edge.layer, edge.child, edge.parent) for edge in judged.right}
        return LevelTree(levels, _links(tree, right), words, _level_names(tree))

    def _meaning(self, node: int) -> int | str | None:
        if node < 0:
            return None
        return node if node < self.truth.num_parts else "several"


def _links(tree: ParseTree, right: set[tuple[int, int, int]]) -> list[Link]:
    place = {
        (number, node.index): position
        for number in range(len(tree.layer_sizes))
        for position, node in enumerate(tree.layer(number))
    }
    return [
        Link(
            edge.layer,
            place[edge.layer, edge.child],
            place[edge.layer + 1, edge.parent],
            max(edge.contribution, 0.0),
            (edge.layer, edge.child, edge.parent) in right,
        )
        for edge in tree.edges
    ]


def _level_names(tree: ParseTree) -> list[str]:
    """How many capsules of each layer are drawn; the class comes last."""
    *hidden, _ = tree.layer_sizes
    shown = [f"{len(tree.layer(number))} of {size:,}" for number, size in enumerate(hidden)]
    return [*(f"layer {number + 1}:\n{words}" for number, words in enumerate(shown)), "class"]


def true_levels(drawn: PartWhole, sample: int) -> LevelTree:
    """The true tree of an image: where each part is seen, and what the parts make together."""
    truth = drawn.tree
    masks = drawn.part_masks[sample].double()
    levels: list[list[Seen]] = [[] for _ in range(max(truth.levels) + 1)]
    place: dict[int, int] = {}
    for node, level in enumerate(truth.levels):
        own = [part for part in range(truth.num_parts) if node == part or node in truth.ancestors(part)]
        place[node] = len(levels[level])
        meaning = node if level == 0 else "several"
        levels[level].append(
            Seen(to_array(masks[own].sum(0)), meaning, truth.names[node].rpartition("/")[2], is_true=True)
        )
    links = [
        Link(truth.levels[node], place[node], place[parent])
        for node, parent in enumerate(truth.parents)
        if parent >= 0
    ]
    return LevelTree(levels, links, f"class {int(drawn.labels[sample])}")
