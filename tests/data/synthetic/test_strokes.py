"""Synthetic twins: the right shapes, the same every time, and worth learning from."""

from functools import cache

import pytest
import torch

from torchcaps.core import UserError
from torchcaps.data import DATASETS, list_datasets, load_dataset, synthetic_images, write_twin
from torchcaps.data.api import FAMILIES

TWINS = [
    f"synthetic_{name}"
    for name in list_datasets()
    if not name.startswith("synthetic_")
    and name not in FAMILIES  # those are drawn, or made from others
    and DATASETS[name].task == "classification"
]
load_once = cache(load_dataset)


@pytest.mark.parametrize("name", TWINS)
def test_a_twin_has_the_shape_and_classes_of_its_dataset(name):
    original = DATASETS[name.removeprefix("synthetic_")]
    for split, count in (("train", 512), ("test", 128)):
        data = load_once(name, split)
        assert data.images.shape == (count, original.channels, original.height, original.width)
        assert data.classes == original.classes
        assert set(data.labels.tolist()) == set(range(original.num_classes))


@pytest.mark.parametrize("name", TWINS)
def test_the_nearest_training_image_nearly_always_has_the_right_class(name):
    train, test = (load_once(name, split) for split in ("train", "test"))
    distance = torch.cdist(test.images.flatten(1).float(), train.images.flatten(1).float())
    hits = train.labels[distance.argmin(1)] == test.labels
    assert hits.float().mean() > 0.85


def test_a_twin_is_the_same_every_time_whatever_the_global_seed():
    torch.manual_seed(1)
    first = synthetic_images(DATASETS["cifar10"], "train", 512).images
    torch.manual_seed(2)
    assert torch.equal(load_dataset("synthetic_cifar10", "train").images, first)


def test_who_changes_a_twin_changes_it_for_nobody_else():
    first = load_dataset("synthetic_mnist", "test")
    expected = first.images.clone(), first.labels.clone()
    first.images.zero_()
    first.labels.zero_()
    again = load_dataset("synthetic_mnist", "test")
    assert torch.equal(again.images, expected[0])
    assert torch.equal(again.labels, expected[1])


def test_training_and_test_images_differ():
    train = synthetic_images(DATASETS["mnist"], "train", 20)
    test = synthetic_images(DATASETS["mnist"], "test", 20)
    assert not torch.equal(train.images, test.images)


def test_the_two_cameras_of_a_stereo_pair_see_the_object_at_different_places():
    pairs = synthetic_images(DATASETS["smallnorb"], "train", 10).images.float()
    assert (pairs[:, 0] - pairs[:, 1]).abs().mean() > 5


def test_a_twin_without_a_file_layout_or_with_too_few_images_is_refused(tmp_path):
    with pytest.raises(UserError, match="mnist5k"):
        write_twin("mnist5k", tmp_path, 20)
    with pytest.raises(UserError, match="at least 10"):
        write_twin("mnist", tmp_path, 3)
