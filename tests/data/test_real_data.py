"""The published files, where TORCHCAPS_DATA names a folder that has them."""

import os

import pytest
import torch

from torchcaps.core import MissingDataError
from torchcaps.data import dataset_info, load_dataset

FIRST_LABELS = {
    "mnist": [5, 0, 4, 1, 9],
    "fashion_mnist": [9, 0, 0, 3, 0],
    "cifar10": [6, 9, 9, 4, 1],
    "svhn": [1, 9, 2, 3, 2],
    "smallnorb": [0, 1, 2, 3, 4],
    "imagenette": [0, 0, 0, 0, 0],
}


def load_real(name, split):
    if "TORCHCAPS_DATA" not in os.environ:
        pytest.skip("TORCHCAPS_DATA is not set")
    try:
        return load_dataset(name, split)
    except MissingDataError as error:
        pytest.skip(f"no {name} in TORCHCAPS_DATA ({error})")


@pytest.mark.parametrize("name", FIRST_LABELS)
def test_published_files_have_the_published_size_and_labels(name):
    info = dataset_info(name)
    train, test = load_real(name, "train"), load_real(name, "test")
    assert (len(train), len(test)) == (info.num_train, info.num_test)
    assert train.images.shape[1:] == (info.channels, info.height, info.width)
    assert train.labels[:5].tolist() == FIRST_LABELS[name]
    assert set(train.labels.tolist()) == set(range(info.num_classes))


@pytest.mark.parametrize("name", ["mnist", "cifar10"])
def test_published_pixels_have_the_published_mean_and_deviation(name):
    info, pixels = dataset_info(name), load_real(name, "train").images.float() / 255
    torch.testing.assert_close(pixels.mean((0, 2, 3)), torch.tensor(info.mean), atol=1e-4, rtol=0)
    torch.testing.assert_close(pixels.std((0, 2, 3)), torch.tensor(info.std), atol=1e-4, rtol=0)
