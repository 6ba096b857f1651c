"""The tab of parts and wholes: true and carved trees of drawn images."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from torchcaps.core import UserError
from torchcaps.pages import TrueTrees
from torchcaps.train import load_run
from torchcaps.viz import to_png
from torchcaps.viz.pictures import png_uri

_IMAGES = 24


class PartsShow:
    """The first test images of a run on PartWhole."""

    def __init__(self, folder: Path) -> None:
        self.trees = TrueTrees(load_run(folder), _IMAGES)
        self._shown: dict[int, dict[str, Any]] = {}

    def show(self, number: int) -> dict[str, Any]:
        """One image with its true tree, the carved one, and one from even couplings."""
        if not 0 <= number < _IMAGES:
            raise UserError(f"There are images 0 to {_IMAGES - 1}.")
        if number not in self._shown:
            self._shown[number] = self._draw(number)
        return self._shown[number]

    def _draw(self, number: int) -> dict[str, Any]:
        return {
            "picture": png_uri(to_png(self.trees.draw((number,)), scale=1)),
            "total": _IMAGES,
            "words": "Each dot is a capsule or a part, and a line leads from it to the whole, the square. "
            "Its colour says which part lies there. Carved is the tree of the network; beside it stands "
            "the one that couplings without any preference would give. Precision is the share of a tree's "
            "lines that are right, recall the share of true lines that it has.",
        }
