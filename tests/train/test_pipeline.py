import torch

from torchcaps.data import load_dataset
from torchcaps.train import load_splits
from torchcaps.train.recipe import Data


def distinct(data):
    return {image.numpy().tobytes() for image in data.images}


def images_of(split_seed, limit=60):
    settings = Data(name="synthetic_mnist", limit=limit, validation=0.25, split_seed=split_seed)
    splits = load_splits(settings, None, torch.device("cpu"))
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
