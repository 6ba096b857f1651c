"""A network of digits is evaluated on photographs in folders of their classes."""

from shutil import copyfile

import pytest
import torch
from zoo.handwriting import inverted, photograph, thick_pen

from torchcaps.core import UserError
from torchcaps.data import load_dataset
from torchcaps.train import load_split
from torchcaps.zoo import evaluate_run, load_photos, load_pretrained


@pytest.fixture(scope="module")
def run():
    return load_pretrained("dr_capsnet_minimal.mnist")


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    """Two photographs in colour of each of three digits."""
    root = tmp_path_factory.mktemp("photos")
    for digit in "147":
        (root / digit).mkdir()
        for name, page in (("a", thick_pen), ("b", inverted)):
            photograph(page, digit).convert("RGB").save(root / digit / f"{name}.png")
    return root


def test_photographs_are_prepared_as_for_predict_and_all_of_them_count(run, photos):
    found = evaluate_run(run, data_name=f"folder:{photos}")
    assert (found["split"], found["images"]) == ("test", 6)
    assert found["accuracy"] >= 5 / 6  # as they are, all would be read as one digit
    assert found["class_accuracy"]["0"] is None  # some of the ten classes will do


def test_a_run_may_be_given_by_its_name(run, photos):
    data = f"folder:{photos}"
    assert evaluate_run("dr_capsnet_minimal.mnist", data_name=data) == evaluate_run(run, data_name=data)


def test_a_folder_with_splits_gives_its_test_images(run, photos, tmp_path):
    for split in ("train", "test"):
        (tmp_path / split / "4").mkdir(parents=True)
    copyfile(photos / "4" / "a.png", tmp_path / "test" / "4" / "a.png")
    assert evaluate_run(run, data_name=f"folder:{tmp_path}")["images"] == 1
    with pytest.raises(UserError, match="has no train images"):
        evaluate_run(run, "train", data_name=f"folder:{tmp_path}")


def test_folders_that_are_no_classes_are_named(run, photos, tmp_path):
    (tmp_path / "four").mkdir()
    with pytest.raises(UserError, match=r"four is not a folder of one of the training classes: 0, 1"):
        evaluate_run(run, data_name=f"folder:{tmp_path}")
    with pytest.raises(UserError, match="should have a folder for each class"):
        evaluate_run(run, data_name=f"folder:{photos / '4'}")


def test_a_dataset_by_name_is_read_as_ever(run):
    mine, _ = load_photos(run, "test", data_name="synthetic_mnist")
    assert torch.equal(mine.images, load_split(run, "test", data_name="synthetic_mnist")[0].images)
    assert len(mine) == len(load_dataset("synthetic_mnist", "test"))
