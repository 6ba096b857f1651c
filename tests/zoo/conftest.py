"""Tiny runs of every task, as training would have left them, and the zoo they are packed into."""

import pytest
import torch

from torchcaps.models import build_model, config_as_json
from torchcaps.storage import read_json, save_weights, write_json, write_text
from torchcaps.train import build
from torchcaps.train.run import card_of, write_recipe
from torchcaps.train.source import source_of
from torchcaps.zoo import Entry, Packing, pack_run

RECIPES = {
    "classification": {
        "model": {"name": "dr_capsnet_tiny_test", "image_size": 28, "num_classes": 10, "decoder": "none"},
        "data": {"name": "synthetic_mnist"},
    },
    "overlap": {
        "model": {"name": "dr_capsnet_multimnist", "stem_channels": 4, "primary_types": 2, "class_pose": 6},
        "data": {"name": "multimnist:base=synthetic_mnist,train=20,test=20"},
    },
    "segmentation": {
        "model": {"name": "segcaps_tiny_test", "image_size": 16, "reconstruction": False},
        "data": {"name": "synthetic_masks"},
    },
    "pose": {
        "model": {"name": "pose_convnet_tiny_test", "image_size": 28, "num_classes": 2},
        "data": {"name": "synthetic_poses"},
    },
    "retrieval": {"model": {"name": "descriptor_tiny_test"}, "data": {"name": "synthetic_places"}},
}
METRICS = {
    "classification": {"test_accuracy": 0.125},
    "overlap": {"test_pair_accuracy": 0.25},
    "segmentation": {"test_dice": 0.75, "test_iou": 0.6},
    "pose": {"test_rotation_error": 4.5, "test_accuracy": 1.0},
    "retrieval": {"test_recall_at_1": 0.5},
}


def untrained_run(folder, task, **changes):
    """A run folder with first weights; `changes` are keys of its recipe."""
    recipe = build({"epochs": 2, **RECIPES[task], **changes})
    torch.manual_seed(0)
    model = build_model(recipe.model)
    save_weights(folder / "weights.safetensors", model.state_dict(), {"config": config_as_json(model.config)})
    described = build({"epochs": 2, **RECIPES[task]})
    write_recipe(folder, recipe, card_of(source_of(described, model).info()))
    write_text(folder / "metrics.jsonl", "")
    result = {
        "metrics": {**METRICS[task], "test_loss": 0.5, "epochs": 2},
        "commit": "abc",
        "precision": "bf16",
    }
    write_json(folder / "result.json", result)
    return folder


def entry_in(folder):
    """What the file in the folder of a packed network says of it."""
    return Entry.from_plain(read_json(folder / "entry.json"), str(folder))


def packed_name(task):
    """What a packed run of a task is called."""
    return f"{RECIPES[task]['model']['name']}.here"


@pytest.fixture(scope="session")
def zoo(tmp_path_factory):
    """A folder of pretrained networks, one for each task."""
    place = tmp_path_factory.mktemp("zoo")
    for task in RECIPES:
        run = untrained_run(place / "runs" / task, task)
        if task == "retrieval":
            write_json(
                run / "matching.json",
                {"pixel": 10.0, "side": 32, "same": [0.4, 0.5, 0.6], "other": [1.2, 1.5, 1.7]},
            )
        pack_run(run, packed_name(task), Packing(licence="none"), out=place / "weights")
    return place / "weights"
