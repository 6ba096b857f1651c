"""True, carved and even-split trees of test images of a run on PartWhole."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from torchcaps.core import LayerTrace, UserError
from torchcaps.data import PartWhole
from torchcaps.parse import ParseTree, find_regions, fully_connected, parse_tree
from torchcaps.parse.truth import Agreement, Trees, compare_trees, owners_in_regions, with_even_couplings
from torchcaps.suites import draw_test_images, measure_truth
from torchcaps.train import Pipeline, Run
from torchcaps.viz import Branch, TreeOnImage, draw_tree_levels, draw_true_trees

from .tree_levels import CarvedLevels, true_levels

_TOP = 32


class TrueTrees:
    """The first test images of a run on PartWhole, seen by its network once.

    Args:
        run: Whose network ends in fully connected capsules.
        count: How many images, or all where there are fewer.
    """

    @torch.no_grad()
    def __init__(self, run: Run, count: int) -> None:
        self._run, self._pipeline = run, Pipeline(run.recipe.data, run.info())
        self.drawn = draw_test_images(run, count)
        inputs = self._pipeline.for_evaluation(self.drawn.images).inputs
        output = run.model(inputs, return_routing=True)
        self._layers = fully_connected(output.layers)
        regions = find_regions(run.model, inputs)
        if regions is None:
            raise UserError(f"{run.folder}: nothing says where on the image the capsules of its network look")
        self._regions = regions
        self._owners = owners_in_regions(self.drawn.owners, regions)
        self.num_right = int((output.activations.argmax(1) == self.drawn.labels).sum())

    @property
    def has_levels(self) -> bool:
        """Whether a tree has more to show than lines from places on the image to the class."""
        return len(self._layers) > 1 or self._regions.shares is not None

    def measure(self) -> dict[str, float]:
        """What the suite finds on these images: trees, maps, and the accuracy with even couplings."""
        return measure_truth(self._run.model, self.drawn, self._pipeline)

    def carve(self, sample: int) -> ParseTree:
        """The tree that is compared with the true one."""
        return parse_tree(self._layers, sample=sample, threshold=0.0, top=_TOP)

    def draw(self, chosen: Sequence[int]) -> Any:
        """A figure with a row for each chosen image: the image, its true tree and the carved ones."""
        if self.has_levels:
            raise UserError("a tree of several levels fills a figure of its own: draw_levels")
        even = [with_even_couplings(trace) for trace in self._layers]
        rows = []
        for sample in chosen:
            found = self._compare(sample)
            rows.append(
                {
                    "true tree": _true_tree(self.drawn, sample),
                    "carved": self._carved(self._layers, sample, _words(found.carved)),
                    "even couplings": self._carved(even, sample, _words(found.even)),
                }
            )
        return draw_true_trees(self.drawn.images[list(chosen)], rows, part_names=self._part_names)

    def draw_levels(self, sample: int) -> Any:
        """A figure of one image: its true tree, and the carved ones with the region of every capsule."""
        found, truth = self._compare(sample), self.drawn.tree
        carved = CarvedLevels(self._regions.alone(sample), self._owners[sample], truth, _TOP)
        size = (self.drawn.owners.shape[1], self.drawn.owners.shape[2])
        even = [with_even_couplings(trace) for trace in self._layers]
        trees = {
            "true tree": true_levels(self.drawn, sample),
            "carved": carved.of(self._layers, sample, size, self._in_words(sample, found)),
            "even couplings": carved.of(even, sample, size, _words(found.even)),
        }
        return draw_tree_levels(self.drawn.images[sample], trees, part_names=self._part_names)

    @property
    def _part_names(self) -> Sequence[str]:
        return self.drawn.tree.names[: self.drawn.tree.num_parts]

    def _compare(self, sample: int) -> Trees:
        return compare_trees(self._layers, sample, self._owners[sample], self.drawn.tree, top=_TOP)

    def _in_words(self, sample: int, found: Trees) -> str:
        answer = int(self._layers[-1].routed.activations[sample].argmax())
        truth = "right" if answer == int(self.drawn.labels[sample]) else "wrong"
        carved, by_chance = _words(found.carved), _words(found.random)
        return f"answer: class {answer}, {truth}; {carved} (random tree: {by_chance})"

    def _carved(self, layers: Sequence[LayerTrace], sample: int, words: str) -> TreeOnImage:
        tree = parse_tree(layers, sample=sample, threshold=0.0, top=_TOP)
        centres = [
            each.field.centre(row, column)
            for each in self._regions.maps
            for row in range(each.grid[0])
            for column in range(each.grid[1])
            for _ in range(each.grid[2])
        ]
        branches = []
        for edge in tree.edges:
            y, x = centres[edge.child]
            number = int(self._owners[sample, edge.child])
            part = number - 1 if 1 <= number <= self.drawn.tree.num_parts else None
            branches.append(Branch(x + 0.5, y + 0.5, part, edge.contribution))
        return TreeOnImage(branches, _true_tree(self.drawn, sample).root, words)


def _words(found: Agreement) -> str:
    return f"precision {found.precision:.0%}, recall {found.recall:.0%}"


def _true_tree(drawn: PartWhole, sample: int) -> TreeOnImage:
    half = drawn.owners.shape[-1] / 2
    at = (drawn.poses[sample, :, :, 2] + half).tolist()
    parts = [Branch(x, y, number) for number, (x, y) in enumerate(at[: drawn.tree.num_parts])]
    return TreeOnImage(parts, (at[-1][0], at[-1][1]), f"class {int(drawn.labels[sample])}")
