"""Photographs of many sizes, brought to one."""

import shutil

import numpy as np
import pytest
import torch
from PIL import Image

from torchcaps.core import MissingDataError, UserError
from torchcaps.data import (
    DATASETS,
    DamagedFileError,
    Preprocess,
    check_dataset,
    dataset_info,
    has_files,
    load_dataset,
    synthetic_images,
    write_twin,
)
from torchcaps.data.readers.imagenette import CLASSES
from torchcaps.train import Data, Source, read_image, task_named

COUNT = 20


@pytest.fixture(scope="module")
def twin(tmp_path_factory):
    folder = tmp_path_factory.mktemp("photographs")
    write_twin("imagenette", folder, COUNT)
    return folder


@pytest.fixture
def own(twin, tmp_path):
    """A copy to change, and the folder of its first class."""
    shutil.copytree(twin, tmp_path, dirs_exist_ok=True)
    return tmp_path, tmp_path / "imagenette2-64/train/n01440764"


def save(path, size, mode="RGB"):
    """A picture of grey columns that get brighter to the right."""
    columns = np.linspace(0, 255, size[0]).round().astype(np.uint8)
    Image.fromarray(np.tile(columns, (size[1], 1))).convert(mode).save(path)


@pytest.mark.parametrize("split", ["train", "test"])
def test_photographs_come_back_sorted_by_class(twin, split):
    expected = synthetic_images(DATASETS["imagenette"], split, COUNT)
    expected = expected.subset(expected.labels.argsort(stable=True))
    found = load_dataset("imagenette", split, twin)
    assert torch.equal(found.images, expected.images)
    assert torch.equal(found.labels, expected.labels)
    assert found.classes[0] == "tench"
    assert found.classes[-1] == "parachute"


@pytest.mark.parametrize("name", ["imagenette2", "imagenette2-320", "imagenette2-160"])
def test_every_published_folder_is_found_and_may_be_the_data_folder(own, name):
    folder, _ = own
    (folder / "imagenette2-64").rename(folder / name)
    assert len(load_dataset("imagenette", "test", folder)) == COUNT
    assert len(load_dataset("imagenette", "test", folder / name)) == COUNT


def test_the_largest_photographs_are_taken(own):
    folder, _ = own
    shutil.copytree(folder / "imagenette2-64", folder / "imagenette2-320")
    save(folder / "imagenette2-320/train/n01440764/more.png", (9, 9))
    assert len(load_dataset("imagenette", "train", folder)) == COUNT + 1


@pytest.mark.parametrize("side", [8, 50, 100])
def test_photographs_of_any_size_and_colour_become_squares(own, side):
    folder, first = own
    for number, (size, mode) in enumerate([((90, 60), "RGB"), ((41, 73), "L"), ((200, 200), "CMYK")]):
        save(first / f"a{number}.JPEG", size, mode)
    data = load_dataset("imagenette", "train", folder, size=side)
    assert data.images.shape == (COUNT + 3, 3, side, side)
    assert data.images.dtype == torch.uint8


def test_a_recipe_decides_the_size(own):
    folder, first = own
    save(first / "wide.JPEG", (120, 80))
    for resize, side in ((0, 64), (40, 40)):
        settings = Data(name="imagenette", validation=0.2, preprocess=Preprocess(resize=resize))
        splits = Source(settings, task_named("classification"), 64, folder).splits(torch.device("cpu"))
        assert splits.train.images.shape[1:] == (3, side, side)
        assert (splits.info.height, splits.info.width) == (side, side)


def test_a_single_photograph_is_cut_as_those_of_the_dataset_are(own):
    folder, first = own
    save(first / "00000.png", (120, 80))
    for fit in ("crop", "pad", "stretch"):
        info = dataset_info("imagenette", folder, size=64, fit=fit)
        expected = load_dataset("imagenette", "train", folder, size=64, fit=fit).images[:1]
        assert torch.equal(read_image(first / "00000.png", info), expected)


def test_a_truncated_photograph_is_named(own):
    folder, first = own
    path = first / "cut.JPEG"
    save(path, (90, 60))
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(
        DamagedFileError, match=r"cut\.JPEG: cannot be read as an image .*data get imagenette"
    ):
        load_dataset("imagenette", "train", folder)
    train, test = check_dataset("imagenette", folder)
    assert (train.is_readable, test.is_readable) == (False, True)
    assert "cut.JPEG" in train.note


def test_a_missing_or_empty_class_is_named(own):
    folder, first = own
    for path in first.iterdir():
        path.unlink()
    for _ in range(2):
        with pytest.raises(DamagedFileError, match="no images of tench in a folder n01440764"):
            load_dataset("imagenette", "train", folder)
        shutil.rmtree(first, ignore_errors=True)
    assert len(load_dataset("imagenette", "test", folder)) == COUNT


def test_a_class_of_another_dataset_is_refused(own):
    folder, first = own
    first.with_name("n02086240").mkdir()
    with pytest.raises(UserError, match="n02086240 is not a folder of one of the training classes"):
        load_dataset("imagenette", "train", folder)


def test_a_missing_folder_says_where_it_looked_and_how_to_get_it(tmp_path):
    with pytest.raises(MissingDataError, match=r"folder val is in none of .*imagenette2-160.* data get imag"):
        load_dataset("imagenette", "test", tmp_path)
    assert not has_files("imagenette", tmp_path)


def test_a_check_counts_the_photographs(twin):
    assert has_files("imagenette", twin)
    train, test = check_dataset("imagenette", twin)
    assert train.is_present
    assert train.is_readable
    assert not train.is_ok
    assert (train.note, test.note) == (f"{COUNT} of 9469 images", f"{COUNT} of 3925 images")


def test_the_size_that_is_told_is_the_one_that_is_asked_for():
    assert dataset_info("imagenette").height == 64
    assert dataset_info("imagenette", size=128).width == 128
    assert dataset_info("cifar10", size=128).width == 32  # of one size: resized later
    assert len(CLASSES) == 10
