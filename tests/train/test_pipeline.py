import pytest
import torch

from torchcaps.data import Augment, Preprocess, load_dataset, write_twin
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
