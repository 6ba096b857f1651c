"""A recipe that trains in less than a second, and what tests look at in the folder of its run."""

import json

import torch
from safetensors.torch import load_file

from torchcaps.train import Silent, build

MODEL = {"name": "dr_capsnet_tiny_test", "image_size": 28, "num_classes": 10, "decoder": "none"}
DIGITS = {"name": "synthetic_mnist", "limit": 40, "validation": 0.2}
SHIFTED_DIGITS = {**DIGITS, "augment": {"shift": 2}}


def small_recipe(**changes):
    """Two batches of drawn digits in each of three epochs; `changes` replace whole keys."""
    values = {
        "model": MODEL,
        "data": DIGITS,
        "optim": {"learning_rate": 1e-2},
        "batch_size": 16,
        "epochs": 3,
    }
    return build({**values, **changes})


def saved_rows(folder):
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def assert_same_weights(first, second):
    """Two files of weights are equal to the bit; the folder of a run stands for those that it ended with."""
    paths = (path / "weights.safetensors" if path.is_dir() else path for path in (first, second))
    one, other = map(load_file, paths)
    assert one.keys() == other.keys()
    assert all(torch.equal(values, other[name]) for name, values in one.items())


def timeless(folder):
    """The rows of a run without what depends on the speed of the machine."""
    return [{**row, "seconds": 0, "images_per_second": 0} for row in saved_rows(folder)]


class Killer(Silent):
    """Stands for a kill after the epoch of this number: nothing is written after it."""

    def __init__(self, epoch):
        self.epoch = epoch

    def epoch_done(self, row):
        if row["epoch"] == self.epoch:
            raise KeyboardInterrupt


class StopAfter(Silent):
    """Asks the run to stop after so many epochs."""

    def __init__(self, epochs):
        self.left = epochs

    @property
    def wants_to_stop(self):
        return self.left <= 0

    def epoch_done(self, row):
        self.left -= 1
