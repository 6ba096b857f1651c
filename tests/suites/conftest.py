"""Small runs that the suites measure."""

import pytest
import torch
from PIL import Image

from torchcaps.data.readers.eth80 import CLASSES
from torchcaps.train import Machine, build, load_run, train

CPU = Machine(device="cpu")


def trained(folder, model, data, machine=CPU):
    recipe = {"model": model, "data": {"validation": 0.2, **data}, "batch_size": 20, "epochs": 1}
    train(build(recipe), folder, machine)
    return load_run(folder)


@pytest.fixture(scope="session")
def digits(tmp_path_factory):
    model = {"name": "dr_capsnet_tiny_test", "image_size": 28, "num_classes": 10, "decoder": "none"}
    return trained(tmp_path_factory.mktemp("digits"), model, {"name": "synthetic_mnist", "limit": 100})


@pytest.fixture(scope="session")
def parts(tmp_path_factory):
    model = {"name": "dr_capsnet_tiny_test", "image_size": 24, "num_classes": 2, "decoder": "none"}
    data = {"name": "partwhole:classes=2,branches=3x2,train=100,test=60"}
    return trained(tmp_path_factory.mktemp("parts"), model, data)


@pytest.fixture(scope="session")
def levels(tmp_path_factory):
    model = {"name": "parse_capsnet_tiny_test", "image_size": 20, "num_classes": 2, "decoder": "none"}
    data = {"name": "partwhole:classes=2,branches=3x2,train=40,test=20"}
    return trained(tmp_path_factory.mktemp("levels"), model, data)


@pytest.fixture(scope="session")
def photographs(tmp_path_factory):
    """A run on noise in the places of ETH-80, whose objects have two familiar azimuths and a novel one."""
    folder = tmp_path_factory.mktemp("photographs")
    rng = torch.Generator().manual_seed(0)
    for category in CLASSES:
        for instance in range(1, 11):
            place = folder / "eth80" / category / f"{category}{instance}"
            place.mkdir(parents=True)
            for view in ("090-000", "090-045", "090-180"):
                noise = torch.randint(256, (20, 20, 3), generator=rng, dtype=torch.uint8)
                Image.fromarray(noise.numpy()).save(place / f"{place.name}-{view}.png")
    image = {"image_size": 20, "in_channels": 3, "num_classes": 8}
    model = {"name": "dr_capsnet_tiny_test", "decoder": "none", **image}
    machine = Machine(device="cpu", data_dir=folder)
    data = {"name": "eth80:axis=azimuth"}
    return trained(tmp_path_factory.mktemp("views"), model, data, machine), folder
