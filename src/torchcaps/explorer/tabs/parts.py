"""The tab of parts and wholes: true and carved trees of drawn images."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from torchcaps.core import UserError, say_truth
from torchcaps.pages import TrueTrees
from torchcaps.train import load_run
from torchcaps.viz import png_uri, to_png

from ..subject import say_hardly

_MOST_IMAGES = 24
_FLAT = (
    "Each dot is a capsule or a part, and a line leads from it to the whole, the square. Its colour says "
    "which part lies there. Carved is the tree of the network; beside it stands the one that couplings "
    "without any preference would give."
)
_LEVELS = (
    "Each small picture is a capsule: hot is the region of the image that it answers for, traced down "
    "through the couplings to the places that make the first capsules. Its frame says which part it looks at "
    "or is mostly made of; dark is several parts together, grey is none. A line in colour is right: it leads "
    "from a part to the same part or to what contains it. Carved is the tree of the network; the "
    "one below is what couplings without any preference would give."
)
_SHARES = (
    "Precision is the share of a tree's lines that are right, recall the share of true lines that it has."
)


class PartsShow:
    """The first test images of a run on PartWhole."""

    def __init__(self, folder: Path) -> None:
        self.trees = TrueTrees(load_run(folder), _MOST_IMAGES)
        self._total = len(self.trees.drawn)  # a dataset may have fewer
        accuracy = self.trees.num_right / self._total
        found = {"accuracy": accuracy, **self.trees.measure()}
        self._about = say_truth(found, f"these {self._total} images")
        self._shown: dict[int, dict[str, Any]] = {}

    def show(self, number: int) -> dict[str, Any]:
        """One image with its true tree, the carved one, and one from even couplings."""
        if not 0 <= number < self._total:
            raise UserError(f"There are images 0 to {self._total - 1}.")
        if number not in self._shown:
            self._shown[number] = self._draw(number)
        return self._shown[number]

    def _draw(self, number: int) -> dict[str, Any]:
        trees = self.trees
        figure = trees.draw_levels(number) if trees.has_levels else trees.draw((number,))
        hardly = say_hardly(trees.carve(number).evenness)
        return {
            "picture": png_uri(to_png(figure, scale=1)),
            "total": self._total,
            "words": f"{_LEVELS if trees.has_levels else _FLAT} {_SHARES} {hardly}".strip(),
            "about": self._about,
        }
