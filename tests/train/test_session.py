import torch
from safetensors.torch import load_file

from torchcaps.data import write_twin
from torchcaps.train import Machine, train
from torchcaps.train.machine import launch
from torchcaps.train.recipe import build
from torchcaps.train.session import Session


def test_every_epoch_draws_anew_and_can_be_repeated():
    values = {
        "model": {"name": "dr_capsnet_tiny_test", "image_size": 28, "num_classes": 10, "decoder": "none"},
        "data": {"name": "synthetic_mnist", "limit": 100, "validation": 0.2},
        "batch_size": 16,
        "epochs": 2,
    }
    session = Session(launch(Machine(device="cpu")), build(values), None)

    def drawn(epoch):
        order = torch.cat(list(session.epoch(epoch)))
        assert len(set(order.tolist())) == 80  # each image once
        return order.tolist(), session.step.random.initial_seed(), torch.initial_seed()

    first, second = drawn(0), drawn(1)
    assert all(one != other for one, other in zip(first, second, strict=True))  # order, augmentation, layers
    assert drawn(0) == first


def test_images_that_stay_in_files_train_the_same_network(tmp_path, monkeypatch):
    write_twin("folder", tmp_path / "images", 40)
    values = {
        "model": {
            "name": "dr_capsnet_tiny_test",
            "in_channels": 3,
            "image_size": 20,
            "num_classes": 3,
            "decoder": "none",
        },
        "data": {"name": f"folder:{tmp_path / 'images'}", "validation": 0.25, "augment": {"shift": 2}},
        "batch_size": 8,
        "epochs": 2,
    }
    settings, machine = build(values), Machine(device="cpu")
    expected = train(settings, tmp_path / "memory", machine)
    monkeypatch.setattr("torchcaps.data.readers.picture.MOST_BYTES_IN_MEMORY", 1000)
    session = Session(launch(machine), settings, None)
    assert not session.splits.train.is_in_memory
    assert train(settings, tmp_path / "files", machine)["metrics"] == expected["metrics"]
    memory, files = (load_file(tmp_path / name / "weights.safetensors") for name in ("memory", "files"))
    assert all(torch.equal(values, files[name]) for name, values in memory.items())
