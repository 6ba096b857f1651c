"""Runs with random weights, as training would have left them."""

from torchcaps.models import create_model
from torchcaps.storage import save_weights
from torchcaps.train import build
from torchcaps.train.run import card_of, write_recipe
from torchcaps.train.source import source_of


def untrained_run(folder, name="segcaps_tiny_test", **data):
    model = {"name": name, **({"image_size": 32, "reconstruction": False} if "segcaps" in name else {})}
    recipe = build({"model": model, "data": {"name": "synthetic_masks", **data}, "epochs": 1})
    network = create_model(**model)
    write_recipe(folder, recipe, card_of(source_of(recipe, network).info()))
    save_weights(folder / "weights.safetensors", network.state_dict(), {"epoch": 0})
    return folder
