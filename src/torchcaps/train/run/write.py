"""The files of a run: its recipe, the card of its data, and the weights of its network."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from torchcaps.core import as_plain
from torchcaps.models import Network, config_as_json
from torchcaps.storage import save_weights, write_json, write_text

from ..recipe import Recipe, recipe_as_json, recipe_as_yaml
from .data_card import DataCard


def write_recipe(folder: Path, recipe: Recipe, card: DataCard | None = None) -> None:
    """Write down what a run does, for programs and for people, and the card of its data."""
    write_json(folder / "recipe.json", recipe_as_json(recipe))
    if card is not None:
        write_json(folder / "data.json", as_plain(card))
    write_text(folder / "recipe.yaml", recipe_as_yaml(recipe))


def write_weights(path: Path, network: Network, header: Mapping[str, object]) -> None:
    """Write the weights of a network; the header of the file says `header` and the network's config."""
    save_weights(path, network.state_dict(), {**header, "config": config_as_json(network.config)})


def write_untrained(
    folder: Path,
    recipe: Recipe,
    network: Network,
    *,
    epoch: int = -1,
    card: DataCard | None = None,
    header: Mapping[str, object] | None = None,
) -> None:
    """Write a network as a run in `folder` that has no history of training.

    Args:
        folder: Of the new run.
        recipe: Trains on from these weights.
        network: Its weights become those of the run.
        epoch: In which they were trained; -1 where none is known.
        card: Of the data that the network was trained on.
        header: What the file of weights says beside model, config and epoch.
    """
    header = {**(header or {}), "model": recipe.model, "epoch": epoch}
    write_weights(folder / "weights.safetensors", network, header)
    write_recipe(folder, recipe, card)
    write_text(folder / "metrics.jsonl", "")
