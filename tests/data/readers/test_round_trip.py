"""Every reader gives back exactly what its file layout was written from."""

import gzip
import shutil

import pytest
import torch

from torchcaps.core import MissingDataError
from torchcaps.data import DATASETS, load_dataset, synthetic_images, write_twin
from torchcaps.data.readers.smallnorb import read_smallnorb_info

LAYOUTS = ["mnist", "fashion_mnist", "cifar10", "svhn", "smallnorb"]
COUNT = 25


@pytest.fixture(scope="module")
def twins(tmp_path_factory):
    folder = tmp_path_factory.mktemp("twins")
    for name in LAYOUTS:
        write_twin(name, folder, COUNT)
    return folder


@pytest.mark.parametrize("split", ["train", "test"])
@pytest.mark.parametrize("name", LAYOUTS)
def test_a_reader_gives_back_what_was_written(name, split, twins):
    expected = synthetic_images(DATASETS[name], split, COUNT)
    found = load_dataset(name, split, twins)
    assert torch.equal(found.images, expected.images)
    assert torch.equal(found.labels, expected.labels)
    assert found.classes == expected.classes


@pytest.mark.parametrize("name", LAYOUTS)
def test_the_environment_can_name_the_folder(name, twins, monkeypatch):
    monkeypatch.setenv("TORCHCAPS_DATA", str(twins))
    assert len(load_dataset(name, "test")) == COUNT


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_missing_dataset_says_where_it_looked_and_how_to_get_it(name, tmp_path):
    with pytest.raises(MissingDataError, match=f"torchcaps data get {name}") as caught:
        load_dataset(name, "train", tmp_path)
    assert str(tmp_path) in str(caught.value)
    assert "TORCHCAPS_DATA" in str(caught.value)


def test_unpacked_files_are_read_too(twins, tmp_path):
    for packed in [*twins.glob("MNIST/raw/*.gz"), *twins.glob("smallnorb/*.gz")]:
        target = tmp_path / packed.relative_to(twins).with_suffix("")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(gzip.decompress(packed.read_bytes()))
    for name in ("mnist", "smallnorb"):
        expected = synthetic_images(DATASETS[name], "train", COUNT)
        assert torch.equal(load_dataset(name, "train", tmp_path).images, expected.images)


@pytest.mark.parametrize("place", ["mnist", "MNIST", "mnist/raw", "."])
def test_mnist_is_found_in_the_usual_places(place, twins, tmp_path):
    shutil.copytree(twins / "MNIST/raw", tmp_path / place, dirs_exist_ok=True)
    assert len(load_dataset("mnist", "train", tmp_path)) == COUNT


def test_the_data_folder_may_be_the_folder_of_the_dataset_itself(twins):
    assert len(load_dataset("fashion_mnist", "train", twins / "FashionMNIST/raw")) == COUNT
    assert len(load_dataset("mnist", "train", twins / "MNIST")) == COUNT
    assert len(load_dataset("cifar10", "train", twins / "cifar-10-batches-py")) == COUNT


def test_loose_mnist_files_are_not_taken_for_fashion_mnist(twins):
    with pytest.raises(MissingDataError):
        load_dataset("fashion_mnist", "train", twins / "MNIST/raw")


def test_smallnorb_tells_how_each_pair_was_taken(twins):
    info = read_smallnorb_info(twins, "train")
    assert info.instance[:6].tolist() == [4, 6, 7, 8, 9, 4]
    assert info.elevation[:6].tolist() == [30, 30, 30, 30, 30, 35]
    assert info.azimuth.unique().tolist() == [0]
    assert info.lighting.shape == (COUNT,)
