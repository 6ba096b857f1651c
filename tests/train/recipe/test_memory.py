import subprocess
import sys
from contextlib import nullcontext
from dataclasses import dataclass, replace

import pytest
import torch
from torch import nn
from torch.autograd.graph import saved_tensors_hooks
from torch.utils.checkpoint import checkpoint

from torchcaps.core import UserError, sketching
from torchcaps.models import Network, create_model, list_models
from torchcaps.train import Machine, train
from torchcaps.train.recipe import build, load_recipe, require_memory, require_memory_to_train
from torchcaps.train.recipe.memory import least_bytes

SMALL = {"model": {"name": "dr_capsnet_tiny_test"}, "data": {"name": "synthetic_mnist"}, "epochs": 1}
SKETCH = """
import sys
from torchcaps.train import load_recipe

for name in ("mnist/efficient_capsnet", "mnist/dr_capsnet", "mnist/gamma_capsnet", "mnist/deepcaps"):
    load_recipe(name).sketch()
print({"sympy", "torch._dynamo", "triton.runtime"} & set(sys.modules))
"""


def test_weights_have_to_fit_into_the_memory_of_the_machine(monkeypatch):
    recipe = build(SMALL)
    needed = 4 * sum(each.numel() for each in recipe.sketch().parameters())
    for there in (needed, 0):  # 0 where the system does not tell
        monkeypatch.setattr("torchcaps.train.recipe.memory.machine_memory", lambda there=there: there)
        require_memory(recipe)
    monkeypatch.setattr("torchcaps.train.recipe.memory.machine_memory", lambda: needed - 1)
    with pytest.raises(UserError, match="GiB for its weights alone"):
        require_memory(recipe)


@pytest.mark.parametrize(
    ("changes", "precision", "there", "fits"),
    [
        ({}, "32", 8, None),
        ({"batch_size": 400}, "32", 8, None),
        ({"model.image_size": 400}, "32", 8, None),
        ({"model.image_size": 4000, "batch_size": 1}, "32", 16, None),
        ({"model.image_size": 4000, "batch_size": 1}, "32", 8, 0),
        ({"model.image_size": 4000, "batch_size": 8}, "32", 16, 1),
        ({"model.image_size": 4000, "batch_size": 8}, "32", 100, 7),
        ({"model.image_size": 4000, "batch_size": 8}, "32", 200, None),
        ({"model.image_size": 4000, "batch_size": 8}, "bf16", 100, None),
        ({"model.image_size": 4000, "batch_size": 8}, "32", 0, None),  # where the system does not tell
    ],
)
def test_a_step_is_refused_where_even_its_maps_exceed_the_memory(
    monkeypatch, changes, precision, there, fits
):
    """So many images may fit; None where all do, or where that is not known."""
    monkeypatch.setattr("torchcaps.train.recipe.memory.machine_memory", lambda: there * 2**30)
    recipe, machine = load_recipe("segmentation/segcaps_r3", changes=changes), Machine(device="cpu")
    refusal = rf"images of 1x4000x4000 needs at least [\d.]+ GiB, and this machine has {there}.0 GiB"
    advice = "choose smaller images" + (f", or a batch_size of at most {fits}$" if fits else "$")
    with nullcontext() if fits is None else pytest.raises(UserError, match=f"{refusal} of memory; {advice}"):
        require_memory_to_train(recipe, replace(machine, precision=precision))


@pytest.mark.parametrize(("batch", "devices", "is_refused"), [(8, 1, True), (8, 4, False), (32, 4, True)])
def test_on_gpus_the_memory_of_one_must_hold_its_share_of_the_batch(monkeypatch, batch, devices, is_refused):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (2**30, 80 * 2**30))
    monkeypatch.setattr("torchcaps.train.recipe.memory.machine_memory", lambda: 2**30)
    changes = {"model.image_size": 4000, "batch_size": batch}
    recipe = load_recipe("segmentation/segcaps_r3", changes=changes)
    refusal = rf"step with 8 images .* and cuda:0 has 80.0 GiB.* at most {5 * devices}$"
    with pytest.raises(UserError, match=refusal) if is_refused else nullcontext():
        require_memory_to_train(recipe, Machine(device="cuda", devices=devices))


def test_weights_have_to_fit_into_the_memory_of_the_gpu(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (2**30, 2**20))
    with pytest.raises(UserError, match=r"GiB for its weights alone, and cuda:0 has 0.0 GiB"):
        require_memory_to_train(load_recipe("mnist/dr_capsnet"), Machine(device="cuda"))


@pytest.mark.parametrize("name", list_models("*_tiny_test"))
def test_what_a_step_is_said_to_need_is_no_more_than_what_it_keeps(name):
    with sketching():
        sketch = create_model(name)
    found, network, kept = least_bytes(sketch), create_model(name), {}
    weights = {each.untyped_storage().data_ptr() for each in network.parameters()}

    def keep(tensor):
        kept[tensor.untyped_storage().data_ptr()] = tensor
        return tensor

    with saved_tensors_hooks(keep, lambda tensor: tensor):
        network.train()(torch.rand(2, *network.image_shape))
    assert 0 < found <= sum(kept[place].untyped_storage().nbytes() for place in kept.keys() - weights) / 2


@dataclass(frozen=True, kw_only=True)
class Sizes:
    in_channels: int = 1
    image_size: int = 8
    num_classes: int = 2


class TwoConvolutions(Network):
    decoder = None

    def __init__(self, way):
        super().__init__(Sizes())
        self.first, self.second = nn.Conv2d(1, 4, 3, padding=1), nn.Conv2d(4, 2, 3, padding=1)
        self.requires_grad_(way != "frozen")
        self.way = way

    def forward(self, images):
        if self.way == "needs numbers":
            images = images / images.max().item()
        return (
            checkpoint(self.body, images, use_reentrant=False) if self.way == "again" else self.body(images)
        )

    def body(self, images):
        return self.second(self.first(images).relu())


@pytest.mark.parametrize(
    ("way", "numbers"),
    [
        ("learns", 64 + 4 * 64 + 2 * 64),  # what both read, and what the second writes
        ("frozen", 4 * 64),  # what the first writes
        ("again", 64 + 4 * 64),  # all but the image is computed again for the backward pass
        ("needs numbers", 0),
    ],
)
def test_only_what_is_surely_kept_counts(way, numbers):
    assert least_bytes(TwoConvolutions(way).to("meta")) == 4 * numbers


def test_a_training_on_a_cpu_that_cannot_fit_leaves_nothing(monkeypatch, tmp_path):
    recipe = build({**SMALL, "batch_size": 10**6})
    monkeypatch.setattr("torchcaps.train.recipe.memory.machine_memory", lambda: 2**30)
    with pytest.raises(UserError, match="a training step with 1000000 images of 1x20x20 needs at least"):
        train(recipe, tmp_path / "run", Machine(device="cpu"))
    assert not (tmp_path / "run").exists()


def test_a_sketch_does_not_wait_for_the_compiler():
    """In a new process: other tests have imported it."""
    done = subprocess.run([sys.executable, "-c", SKETCH], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
