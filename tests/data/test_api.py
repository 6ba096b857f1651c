"""The dataset registry, and images set aside for validation."""

from pathlib import Path

import pytest
import torch
from jaxtyping import TypeCheckError

from torchcaps.core import UnknownNameError, UserError
from torchcaps.data import (
    DATASETS,
    LabelledImages,
    dataset_info,
    list_datasets,
    load_dataset,
    resolve_data_dir,
    split_validation,
)
from torchcaps.data.api import FAMILIES
from torchcaps.data.split import split_indices


def some_images(count: int = 40) -> LabelledImages:
    images = torch.arange(count, dtype=torch.uint8).view(-1, 1, 1, 1).expand(-1, 1, 4, 4).contiguous()
    return LabelledImages(images, torch.arange(count) % 3, ("a", "b", "c"))


def test_every_dataset_has_consistent_facts_and_one_that_is_read_a_twin():
    for name in list_datasets():
        info = DATASETS[name]
        assert info.name == name
        assert len(info.mean) == len(info.std) == info.channels
        assert info.num_classes == len(set(info.classes))
        if not name.startswith("synthetic_") and name not in FAMILIES:
            assert f"synthetic_{name}" in DATASETS


def test_names_can_be_listed_by_pattern():
    assert list_datasets("mnist*") == ["mnist", "mnist5k"]


def test_a_misspelt_name_is_answered_with_near_ones():
    with pytest.raises(UnknownNameError, match=r"did you mean .*mnist"):
        load_dataset("mnits", "train")
    with pytest.raises(UnknownNameError):
        dataset_info("mnits")


def test_an_unknown_split_is_refused():
    with pytest.raises((UserError, TypeCheckError)):
        load_dataset("synthetic_mnist", "validation")


def test_batches_are_the_examples_in_their_order():
    data = some_images(10)
    images, labels = (torch.cat(parts) for parts in zip(*data.batches(4), strict=True))
    assert torch.equal(images, data.images)
    assert torch.equal(labels, data.labels)
    chosen = torch.tensor([7, 2])
    assert all(map(torch.equal, data.at(chosen), (data.images[chosen], data.labels[chosen])))


def test_the_data_folder_is_the_argument_then_the_environment_then_the_cache(monkeypatch):
    monkeypatch.setenv("TORCHCAPS_DATA", "/somewhere")
    assert resolve_data_dir("/here") == Path("/here")
    assert resolve_data_dir() == Path("/somewhere")
    monkeypatch.delenv("TORCHCAPS_DATA")
    assert resolve_data_dir() == Path.home() / ".cache/torchcaps/data"
    assert resolve_data_dir("~/data") == Path.home() / "data"


@pytest.mark.parametrize(("count", "fraction"), [(100, 0.05), (7, 0.3), (60_000, 0.1), (2, 0.5)])
def test_training_and_validation_are_disjoint_and_complete(count, fraction):
    train, validation = split_indices(count, fraction)
    assert len(validation) == round(count * fraction)
    assert torch.equal(torch.cat([train, validation]).sort().values, torch.arange(count))


def test_a_split_depends_on_its_seed_and_not_on_the_global_one():
    torch.manual_seed(1)
    first = split_indices(1000, 0.1, seed=3)[1]
    before = torch.get_rng_state()
    torch.manual_seed(2)
    assert torch.equal(split_indices(1000, 0.1, seed=3)[1], first)
    assert not torch.equal(split_indices(1000, 0.1, seed=4)[1], first)
    torch.manual_seed(1)
    assert torch.equal(torch.get_rng_state(), before)


def test_validation_images_keep_their_labels():
    train, validation = split_validation(some_images(), fraction=0.25)
    assert (len(train), len(validation)) == (30, 10)
    for part in (train, validation):
        assert torch.equal(part.images[:, 0, 0, 0] % 3, part.labels)


@pytest.mark.parametrize(("count", "fraction"), [(5, 0.05), (1, 0.5), (10, 0.99), (10, 0.0), (10, 1.0)])
def test_a_split_that_leaves_one_part_empty_is_refused(count, fraction):
    with pytest.raises(UserError):
        split_indices(count, fraction)
