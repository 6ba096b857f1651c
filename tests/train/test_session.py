import torch

from torchcaps.train import Machine
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
