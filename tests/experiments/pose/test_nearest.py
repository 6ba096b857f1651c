"""The yardstick of the chapter on rotations."""

import torch

from torchcaps.core.rotation import random_rotations
from torchcaps.experiments.pose.nearest import NearestImage


def test_an_image_that_is_stored_gets_its_own_class_and_rotation():
    images = torch.rand(300, 3, 5, 4, generator=torch.Generator().manual_seed(0))
    labels, rotations = torch.arange(300) % 6, random_rotations(300, torch.Generator().manual_seed(1))
    found = NearestImage(images, labels, rotations, 6)(images + 0.01)
    assert torch.equal(found.activations.argmax(1), labels)
    assert torch.equal(found.rotations[torch.arange(300), labels], rotations)


def test_the_smallest_distance_decides():
    images = torch.tensor([0.0, 1.0, 4.0]).reshape(3, 1, 1, 1)
    rotations = torch.eye(4)[:3]
    found = NearestImage(images, torch.tensor([2, 1, 0]), rotations, 3)(torch.full((1, 1, 1, 1), 2.4))
    assert found.activations.tolist() == [[0.0, 1.0, 0.0]]
    assert found.rotations[0, 1].tolist() == [0.0, 1.0, 0.0, 0.0]
