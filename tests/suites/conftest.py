"""Small runs that the suites measure."""

import pytest

from torchcaps.train import Machine, build, load_run, train

CPU = Machine(device="cpu")


def trained(folder, model, data):
    recipe = {"model": model, "data": {"validation": 0.2, **data}, "batch_size": 20, "epochs": 1}
    train(build(recipe), folder, CPU)
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
