from functools import partial

import pytest
import torch
from PIL import Image

from torchcaps.core import UserError
from torchcaps.data import (
    Augment,
    Examples,
    MaskedImages,
    Preprocess,
    load_dataset,
    resize_bytes,
    write_twin,
)
from torchcaps.train import Data, Source, task_named


def distinct(data):
    return {image.numpy().tobytes() for image in data.images}


def images_of(split_seed, limit=60):
    settings = Data(name="synthetic_mnist", limit=limit, validation=0.25, split_seed=split_seed)
    splits = Source(settings, task_named("classification")).splits(torch.device("cpu"))
    return [distinct(splits.train), distinct(splits.validation)]


def test_the_split_seed_chooses_which_images_a_limit_keeps_and_which_validate():
    whole = distinct(load_dataset("synthetic_mnist", "train"))
    train, validation = images_of(0)
    assert (len(train), len(validation)) == (45, 15)
    assert not train & validation
    assert train | validation <= whole
    assert images_of(0) == [train, validation]
    others = images_of(1)
    assert train | validation != others[0] | others[1]
    unlimited = images_of(0, limit=0), images_of(1, limit=0)
    assert unlimited[0][0] | unlimited[0][1] == unlimited[1][0] | unlimited[1][1] == whole
    assert unlimited[0][1] != unlimited[1][1]


def test_overlaid_objects_are_resized_as_their_images_are():
    name = "multimnist:base=synthetic_mnist,train=40,test=20"
    source = Source(Data(name=name, preprocess=Preprocess(resize=18)), task_named("overlap"), 18)
    train = source.splits(torch.device("cpu")).train
    assert train.images.shape[2:] == train.alone.shape[2:] == (18, 18)
    assert (train.images.int() - train.alone.int().amax(1, keepdim=True)).min() >= -1


def test_masks_are_resized_as_their_images_are_and_keep_class_numbers():
    masks = torch.zeros(3, 1, 12, 16, dtype=torch.uint8)
    masks[:, :, 2:10, 4:12] = 3
    examples = MaskedImages(masks * 85, masks, ("a", "b", "c"))
    found = examples.resized(partial(resize_bytes, size=(6, 8)))
    assert found.masks.unique().tolist() == [0, 3]
    assert torch.equal(found.masks[0, 0, 1:5, 2:6], torch.full((4, 4), 3, dtype=torch.uint8))
    assert found.images[0, 0, 3, 4] == 255
    assert 0 < found.images[0, 0, 0, 4] < 128  # a mixture of neighbours
    assert found.can_be_renewed is False


class DepthImages(Examples):
    """A kind that the library does not know, with a target of the size of its images."""

    task = "depth"
    pictures = {"depth": "bilinear"}

    def __init__(self, images, depth, classes):
        super().__init__(images, {"depth": depth}, classes)

    def _check_targets(self):
        assert self.targets["depth"].shape[2:] == self.images.shape[2:]

    def targets_at(self, indices):
        return self.targets["depth"][indices]


def test_a_kind_of_another_package_says_which_of_its_targets_are_pictures():
    pixels = torch.full((2, 1, 12, 16), 40, dtype=torch.uint8)
    found = DepthImages(pixels, 2 * pixels, ()).resized(partial(resize_bytes, size=(6, 8)))
    assert torch.equal(found.targets["depth"], torch.full((2, 1, 6, 8), 80, dtype=torch.uint8))


@pytest.mark.parametrize(
    ("settings", "side"),
    [
        ({}, 12),
        ({"preprocess": Preprocess(resize=10)}, 10),
        ({"preprocess": Preprocess(pad=2)}, 16),
        ({"preprocess": Preprocess(center_crop=12)}, 16),
        ({"augment": Augment(crop=12), "preprocess": Preprocess(center_crop=12)}, 16),
    ],
    ids=["network", "resize", "pad", "crop", "random crop"],
)
def test_photographs_are_brought_to_the_size_of_the_network_unless_the_recipe_makes_it(
    settings, side, tmp_path
):
    write_twin("folder", tmp_path, 12)  # images of 16 x 16
    data = Data(name=f"folder:{tmp_path}", validation=0.25, **settings)
    source = Source(data, task_named("classification"), 12)
    splits = source.splits(torch.device("cpu"))
    assert splits.train.images.shape[2:] == source.test(torch.device("cpu")).images.shape[2:] == (side, side)
    assert (splits.info.height, splits.info.width) == (side, side)


def test_of_many_classes_whose_only_image_would_validate_few_are_named(tmp_path):
    for name in range(100):
        (tmp_path / str(name)).mkdir()
        for pixel in (0, 255):
            Image.new("L", (4, 4), pixel).save(tmp_path / str(name) / f"{name}-{pixel}.png")
    source = Source(Data(name=f"folder:{tmp_path}", validation=0.5), task_named("classification"))
    with pytest.raises(UserError, match=r"and \d+ more would train") as error:
        source.splits(torch.device("cpu"))
    assert len(str(error.value)) < 500


def test_a_class_of_a_folder_whose_only_image_would_validate_is_refused(tmp_path):
    write_twin("folder", tmp_path, 12)
    for path in sorted((tmp_path / "train/c").iterdir())[1:]:
        path.unlink()
    task, messages = task_named("classification"), []
    for seed in range(20):
        source = Source(Data(name=f"folder:{tmp_path}", validation=0.3, split_seed=seed), task)
        try:
            labels = source.splits(torch.device("cpu")).train.labels
        except UserError as error:
            messages.append(str(error))
        else:
            assert labels.unique().tolist() == [0, 1, 2]
    assert 0 < len(messages) < 20
    assert all("no image of c would train" in words for words in messages)
