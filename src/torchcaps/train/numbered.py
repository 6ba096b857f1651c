"""Images of a run's own data by name: `test:17`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from PIL import Image

from torchcaps.core import UserError
from torchcaps.data import PICTURE_MODES, Examples

SPLITS = ("test", "validation", "train")


def is_numbered(name: str | Path) -> bool:
    """Whether a name stands for an image of a split, and no file is called so."""
    split, colon, _ = str(name).partition(":")
    return bool(colon) and split in SPLITS and not Path(name).exists()


class NumberedImages:
    """The images that such names stand for.

    Args:
        load: The examples of a split, by its name; asked once for each split.
    """

    def __init__(self, load: Callable[[str], Examples]) -> None:
        self._load = load
        self._splits: dict[str, Examples] = {}

    def find(self, name: str) -> tuple[Examples, int]:
        """The split that `name` is of, and the index of its image."""
        split, _, number = name.partition(":")
        if split not in self._splits:
            self._splits[split] = self._load(split)
        examples = self._splits[split]
        if not number.isdecimal() or int(number) >= len(examples):
            raise UserError(f"{name}: the {split} split has images 0 to {len(examples) - 1}")
        return examples, int(number)

    def picture(self, name: str) -> Image.Image:
        """The image as a picture of its own size."""
        examples, index = self.find(name)
        pixels = np.ascontiguousarray(examples.images[index : index + 1][0].permute(1, 2, 0).cpu())
        if pixels.shape[2] not in PICTURE_MODES:
            raise UserError(f"{name} has {pixels.shape[2]} channels; a picture has 1 or 3")
        return Image.fromarray(pixels[:, :, 0] if pixels.shape[2] == 1 else pixels)
