import json

import pytest
import torch
from PIL import Image

from torchcaps.data import Outline, write_twin
from torchcaps.train import recipe_for_data
from torchcaps.train.recipe import load_recipe, recipe_as_json
from torchcaps.train.source import source_of

PHOTOS, PLACES = "photos/efficient_capsnet", "retrieval/uav_small"


@pytest.fixture
def data_of(monkeypatch):
    """Says of which images a dataset seems to be."""

    def pretend(images, task="classification"):
        found = Outline(task=task, num_classes=10, channels=3, num_train=images)
        monkeypatch.setattr("torchcaps.train.recipe.fitted.outline_dataset", lambda *a, **k: found)

    return pretend


def batch_for(recipe, *overrides, **settings):
    return recipe_for_data(recipe, overrides, data="synthetic_cifar10", **settings).recipe.batch_size


@pytest.mark.parametrize(
    ("images", "overrides", "batch"),
    [
        (128, ("data.validation=0.25",), 16),  # 96 train, of which 32 would make three steps
        (128, ("data.validation=0.5",), 16),  # 64 train: four steps are enough
        (126, ("data.validation=0.5",), 8),  # 63 train
        (10_000, ("data.limit=128", "data.validation=0.5"), 16),  # of these alone
        (3, ("data.validation=0.5",), 1),
        (3, ("data.validation=0.5", "batch_size=64"), 64),  # what is stated stays
    ],
)
def test_a_batch_is_halved_until_an_epoch_of_training_images_has_four_steps(
    data_of, images, overrides, batch
):
    data_of(images)
    assert batch_for(PHOTOS, *overrides) == batch


@pytest.mark.parametrize(
    ("images", "overrides", "share"),
    [
        (1_000_000, (), 0.999),  # as the recipe has it
        (95, (), 0.9),  # 91 train in five steps of 16, and 1 - 1 / 10 spans ten steps
        (95, ("epochs=300",), 0.9),  # so that a run can go on for more epochs
        (95, ("optim.average=0.99",), 0.99),
        (95, ("optim.average=0",), 0.0),
        (95, ("optim.average=0.5",), 0.5),
        (2, ("data.validation=0.5",), 0.5),
    ],
)
def test_the_average_of_weights_spans_two_epochs_at_most(data_of, images, overrides, share):
    """It would else be that of a few images' short training with the initial weights."""
    data_of(images)
    fitted = recipe_for_data("cifar10/efficient_capsnet_modern", overrides, data="synthetic_cifar10")
    assert fitted.recipe.optim.average == pytest.approx(share)
    is_stated = any(each.startswith("optim.average") for each in overrides)
    assert ("optim.average" in fitted.chosen) == (share < 0.999 and not is_stated)


def test_a_batch_that_devices_share_stays_a_multiple_of_their_number(data_of):
    data_of(3)
    assert batch_for(PHOTOS, devices=4) == 4
    assert batch_for(PHOTOS, devices=3) == 64  # as the recipe has it: training says that it cannot be shared


@pytest.mark.parametrize(("start", "channels"), [(None, 1), ("colour", 3), ("grey", 1)])
def test_grey_images_are_read_in_colour_for_a_network_that_began_so(tmp_path, start, channels):
    write_twin("folder", tmp_path / "photos", 12)
    for path in (tmp_path / "photos").rglob("*.png"):
        with Image.open(path) as picture:
            picture.convert("L").save(path)
    before = load_recipe(PHOTOS, changes={"model.in_channels": 3 if start == "colour" else 1})
    (tmp_path / "recipe.json").write_text(json.dumps(recipe_as_json(before)))
    changes = [f"start_from={start}"] if start else []
    fitted = recipe_for_data(PHOTOS, changes, data=str(tmp_path / "photos"), find_start=lambda name: tmp_path)
    network = fitted.recipe.sketch()
    assert network.image_shape[0] == channels
    examples = source_of(fitted.recipe, network).splits(torch.device("cpu"))
    assert examples.info.channels == examples.train.images.shape[1] == channels
    assert torch.equal(examples.train.images[:, 0], examples.train.images[:, -1])


def test_nothing_is_chosen_from_data_of_another_task(data_of):
    data_of(3, task="segmentation")
    assert recipe_for_data(PHOTOS, data="synthetic_cifar10").chosen == {}


@pytest.mark.parametrize(
    ("images", "per_place", "batch"),
    [(10_000, 5, 50), (150, 5, 25), (50, 5, 10), (3, 5, 10), (3, 2, 6), (3, 12, 50), (3, 25, 50)],
)
def test_a_batch_of_places_has_two_or_more_with_all_their_images(data_of, images, per_place, batch):
    data_of(images, task="retrieval")
    assert batch_for(PLACES, f"data.images_per_place={per_place}") == batch
