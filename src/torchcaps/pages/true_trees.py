"""True, carved and even-split trees of test images of a run on PartWhole."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from torchcaps.core import LayerTrace, UserError
from torchcaps.data import PartWhole
from torchcaps.parse import capsule_maps, fully_connected, parse_tree
from torchcaps.parse.truth import compare_trees, owners_of_capsules
from torchcaps.parse.truth.agreement import with_even_couplings
from torchcaps.suites import draw_test_images
from torchcaps.train import Pipeline, Run
from torchcaps.viz import Branch, TreeOnImage, draw_true_trees

_TOP = 32


class TrueTrees:
    """The first test images of a run on PartWhole, seen by its network once.

    Args:
        run: Whose capsules stand on one grid.
        count: How many images.
    """

    @torch.no_grad()
    def __init__(self, run: Run, count: int) -> None:
        pipeline = Pipeline(run.recipe.data, run.info())
        self.drawn = draw_test_images(run, count)
        output = run.model(pipeline.for_evaluation(self.drawn.images).inputs, return_routing=True)
        self._layers, maps = fully_connected(output.layers), capsule_maps(run.model)
        if len(maps) != 1:
            raise UserError(f"{run.folder}: trees are drawn on the image where capsules stand on one grid")
        (self._map,) = maps
        self._owners = owners_of_capsules(self.drawn.owners, maps)

    def draw(self, chosen: Sequence[int]) -> Any:
        """A figure with a row for each chosen image: the image, its true tree and the carved ones."""
        rows = []
        for sample in chosen:
            found = compare_trees(self._layers, sample, self._owners[sample], self.drawn.tree, top=_TOP)
            even = [with_even_couplings(trace) for trace in self._layers]
            rows.append(
                {
                    "true tree": _true_tree(self.drawn, sample),
                    "carved": self._carved(self._layers, sample, _words(found.carved)),
                    "even couplings": self._carved(even, sample, _words(found.even)),
                }
            )
        names = self.drawn.tree.names[: self.drawn.tree.num_parts]
        return draw_true_trees(self.drawn.images[list(chosen)], rows, part_names=names)

    def _carved(self, layers: Sequence[LayerTrace], sample: int, words: str) -> TreeOnImage:
        grid, field = self._map
        owners: Tensor = self._owners[sample]
        tree = parse_tree(layers, sample=sample, grid=grid, threshold=0.0, top=_TOP)
        branches = []
        for edge in tree.edges:
            place, _ = divmod(edge.child, grid[2])
            y, x = field.centre(*divmod(place, grid[1]))
            number = int(owners[edge.child])
            part = number - 1 if 1 <= number <= self.drawn.tree.num_parts else None
            branches.append(Branch(x + 0.5, y + 0.5, part, edge.contribution))
        return TreeOnImage(branches, _true_tree(self.drawn, sample).root, words)


def _words(found: tuple[float, float]) -> str:
    return f"precision {found[0]:.0%}, recall {found[1]:.0%}"


def _true_tree(drawn: PartWhole, sample: int) -> TreeOnImage:
    half = drawn.owners.shape[-1] / 2
    at = (drawn.poses[sample, :, :, 2] + half).tolist()
    parts = [Branch(x, y, number) for number, (x, y) in enumerate(at[: drawn.tree.num_parts])]
    return TreeOnImage(parts, (at[-1][0], at[-1][1]), f"class {int(drawn.labels[sample])}")
