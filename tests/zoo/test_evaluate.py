"""A network of digits is evaluated on photographs in folders of their classes."""

from shutil import copyfile

import pytest
import torch
from PIL import Image
from zoo.handwriting import inverted, photograph, thick_pen

from torchcaps.core import UserError
from torchcaps.data import load_dataset, write_twin
from torchcaps.train import Machine, load_run, load_split, train
from torchcaps.zoo import evaluate_run, load_photos, load_pretrained, predict

from small_runs import small_recipe


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


def test_test_images_of_another_folder_need_no_training_images_and_are_read_as_by_predict(tmp_path):
    write_twin("folder", tmp_path / "pets", 40)
    model = {"name": "dr_capsnet_tiny_test", "in_channels": 3, "image_size": 20, "num_classes": 3}
    data = {"name": f"folder:{tmp_path / 'pets'}", "validation": 0.2}
    tested = small_recipe(model={**model, "decoder": "none"}, data=data, epochs=1)
    train(tested, tmp_path / "run", Machine(device="cpu"))
    mine = load_run(tmp_path / "run")
    own = evaluate_run(mine, data_name=f"folder:{tmp_path / 'pets'}")
    assert own == {**evaluate_run(mine), "data": own["data"]}
    folder = tmp_path / "others" / "test" / "b"  # grey ones of other sizes, of one class
    folder.mkdir(parents=True)
    for side in (20, 30, 50):
        Image.effect_noise((side, 40), 90).save(folder / f"{side}.png")
    found = evaluate_run(mine, data_name=f"folder:{tmp_path / 'others'}")
    assert found["images"] == 3
    answers = [row["class"] for row in predict(mine, sorted(folder.iterdir()))]
    assert found["confusion"][1] == [answers.count(name) for name in "abc"]


def test_a_dataset_by_name_is_read_as_ever(run):
    mine, _ = load_photos(run, "test", data_name="synthetic_mnist")
    assert torch.equal(mine.images, load_split(run, "test", data_name="synthetic_mnist")[0].images)
    assert len(mine) == len(load_dataset("synthetic_mnist", "test"))
