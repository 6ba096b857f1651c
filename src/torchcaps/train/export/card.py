"""What an exported file says about itself."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from torchcaps.core import UserError
from torchcaps.data import DatasetInfo

from ..recipe import Recipe
from ..run import DataCard

CARD = "torchcaps.json"  # name of the entry in an exported file


@dataclass(frozen=True, kw_only=True)
class Card(DataCard):
    """The recipe of a network, and what must be done to an image before the network sees it."""

    recipe: Recipe
    input: tuple[int, int, int]  # channels, height and width that the network takes
    outputs: tuple[str, ...]
    epoch: int
    version: str

    @property
    def info(self) -> DatasetInfo:
        """The dataset as far as the file knows it, without its images."""
        return self.describe(self.recipe.data.name)


def read_card(text: str | None, path: Path) -> Card:
    """The card in `text`; a file that has none was not exported by this library."""
    if text is None:
        raise UserError(f"{path} was not written by torchcaps export: it has no {CARD}")
    try:
        values = json.loads(text)
    except (ValueError, RecursionError) as error:  # no JSON, a number without end, or deep nesting
        raise UserError(f"{path} is damaged: its {CARD} cannot be read ({error})") from error
    return Card.from_plain(values, f"{path}: {CARD}")
