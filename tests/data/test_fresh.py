"""Datasets that are drawn can be drawn anew: other examples of the same kind, the same for the same seed."""

import pytest
import torch

from torchcaps.core.seeding import generator
from torchcaps.data import load_dataset
from torchcaps.data.rendering import View, cube_tetrahedron, render_smooth

DRAWN = {
    "synthetic_cube_tetrahedron": "pose",
    "multimnist:base=synthetic_mnist,train=60": "overlap",
    "partwhole:train=60": "classification",
}


def parts(examples):
    return [examples.images, *examples.targets.values()]


@pytest.mark.parametrize("name", DRAWN)
def test_a_seed_decides_what_is_drawn_anew(name):
    data = load_dataset(name, "train", task=DRAWN[name], size=28 if DRAWN[name] == "pose" else 0)
    some = data.subset(torch.arange(24)).to("cpu")
    before = [part.clone() for part in parts(some)]
    some.renew(generator(0, "epoch", 1))
    first = [part.clone() for part in parts(some)]
    assert (first[0] != before[0]).flatten(1).any(1).float().mean() > 0.9
    some.renew(generator(0, "epoch", 2))
    assert not torch.equal(some.images, first[0])
    some.renew(generator(0, "epoch", 1))
    assert all(map(torch.equal, parts(some), first))


@pytest.mark.parametrize("name", DRAWN)
def test_a_generator_that_goes_on_draws_others_each_time(name):
    data = load_dataset(name, "train", task=DRAWN[name], size=28 if DRAWN[name] == "pose" else 0)
    some, random = data.subset(torch.arange(12)).to("cpu"), generator(0, "epoch", 1)
    some.renew(random)
    first = some.images.clone()
    some.renew(random)
    assert not torch.equal(some.images, first)


@pytest.mark.parametrize("name", DRAWN)
def test_what_is_drawn_anew_leaves_the_dataset_as_it_is(name):
    def load():
        return load_dataset(name, "train", task=DRAWN[name], size=28 if DRAWN[name] == "pose" else 0)

    before = [part.clone() for part in parts(load().to("cpu"))]
    load().to("cpu").renew(generator(0, "epoch", 1))
    assert all(map(torch.equal, parts(load().to("cpu")), before))


def test_rotations_and_classes_are_those_of_the_images_drawn_anew():
    some = load_dataset("synthetic_cube_tetrahedron", "train", task="pose", size=28)
    some = some.subset(torch.arange(7)).to("cpu")
    some.renew(generator(0, "epoch", 1))
    meshes, view = cube_tetrahedron().objects, View(height=28, width=28)
    for image, label, rotation in zip(some.images, some.labels, some.rotations, strict=True):
        assert torch.equal(image, render_smooth(meshes[label].mesh, rotation[None], view)[0])
