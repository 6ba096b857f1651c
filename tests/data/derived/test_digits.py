"""Datasets made from digits: where digits are put, what is done to them, and that a seed repeats it."""

import pytest
import torch
from torch.nn import functional as F

from torchcaps.core import UserError
from torchcaps.core.seeding import generator
from torchcaps.data import (
    CORRUPTIONS,
    corrupt,
    corrupt_images,
    dataset_info,
    load_dataset,
    overlay_digits,
)
from torchcaps.data.corrupt import blur
from torchcaps.data.derived import multi
from torchcaps.data.derived.affnist_style import affine_versions
from torchcaps.train.recipe import Data
from torchcaps.train.source import Source
from torchcaps.train.tasks import task_named

BASE = "base=synthetic_mnist"
DIGITS = load_dataset("synthetic_mnist", "test")


def square():
    """A bright square of 20x20 pixels in the middle of 28x28, as the box of an MNIST digit."""
    images = torch.zeros(64, 1, 28, 28, dtype=torch.uint8)
    images[:, :, 4:24, 4:24] = 255
    return images


def test_expanded_digits_lie_in_the_middle_of_40x40():
    found = load_dataset(f"expanded_mnist:{BASE}", "test")
    assert found.images.shape[1:] == (1, 40, 40)
    assert torch.equal(found.images[:, :, 6:34, 6:34], DIGITS.images)
    assert not found.images[:, :, :6].any()


@pytest.mark.parametrize(
    "name",
    [
        f"expanded_mnist:{BASE}",
        f"affnist_style:{BASE},copies=2",
        f"multimnist:{BASE},test=40",
        f"corrupted_mnist:{BASE}",
    ],
)
def test_facts_fit_the_images(name):
    info, found = dataset_info(name), load_dataset(name, "test")
    assert found.images.shape[1:] == (info.channels, info.height, info.width)
    assert found.task == info.task
    assert len(found) == info.num_test


def test_mean_and_deviation_follow_from_those_of_the_base():
    inner = torch.rand(4, 1, 28, 28)
    outer = F.pad(inner, (6,) * 4)
    share = (28 / 40) ** 2
    mean = share * inner.mean()
    deviation = (share * (inner.std(correction=0) ** 2 + inner.mean() ** 2) - mean**2) ** 0.5
    torch.testing.assert_close(outer.mean(), mean)
    torch.testing.assert_close(outer.std(correction=0), deviation)
    info = dataset_info("expanded_mnist")
    assert info.mean[0] == pytest.approx(0.1307 * share)
    assert info.std[0] == pytest.approx((share * (0.3081**2 + 0.1307**2) - (0.1307 * share) ** 2) ** 0.5)


def test_affine_versions_stay_in_the_frame_with_areas_in_the_published_range():
    versions = affine_versions(square(), generator(0, "test")).float() / 255
    areas = versions.sum((1, 2, 3)) / 400
    assert areas.min() > 0.8**2 - 0.05
    assert areas.max() < 1.2**2 + 0.05
    assert areas.std() > 0.05
    middles = (versions * torch.arange(40.0)).sum((1, 2, 3)) / versions.sum((1, 2, 3))
    assert middles.std() > 2  # they move


def test_copies_of_a_digit_differ_and_repeat_by_seed():
    found = load_dataset(f"affnist_style:{BASE},copies=2", "test")
    again = load_dataset(f"affnist_style:{BASE},copies=2", "test")
    assert torch.equal(found.images, again.images)
    count = len(DIGITS)
    assert torch.equal(found.labels[:count], found.labels[count:])
    assert not torch.equal(found.images[:count], found.images[count:])


@pytest.mark.parametrize("limit", [0, 100])
def test_copies_of_a_digit_train_or_validate_together(limit):
    settings = Data(name=f"affnist_style:{BASE},copies=3", validation=0.2, limit=limit)
    found = Source(settings, task_named("classification")).splits(torch.device("cpu"))
    train, validation = set(found.train.origins.tolist()), set(found.validation.origins.tolist())
    assert not train & validation
    assert len(validation) == round(0.2 * len(train | validation))
    assert len(found.train) + len(found.validation) == (limit or 3 * len(train | validation))
    labels = load_dataset("synthetic_mnist", "train").labels
    assert torch.equal(found.validation.labels, labels[found.validation.origins])


def shown(pairs, pad=multi.PAD):
    """The digits of pairs that were not moved."""
    inner = pairs.alone[:, :, pad:-pad, pad:-pad].flatten(0, 1)
    return {digit.numpy().tobytes() for digit in inner}


def digits_of(split):
    return {image.numpy().tobytes() for image in load_dataset("synthetic_mnist", split).images[:, 0]}


@pytest.mark.parametrize("limit", [0, 200])
def test_pairs_validate_with_digits_that_no_training_pair_shows(limit):
    name = f"multimnist:{BASE},shift=0,train=2000,test=500"
    source = Source(Data(name=name, validation=0.2, limit=limit), task_named("overlap"))
    found = source.splits(torch.device("cpu"))
    assert (len(found.train), len(found.validation)) == ((160, 40) if limit else (1600, 400))
    train, validation = shown(found.train), shown(found.validation)
    assert not train & validation
    assert train | validation <= digits_of("train")
    assert shown(source.test(torch.device("cpu"))) <= digits_of("test") - digits_of("train")
    if not limit:  # enough pairs to show every digit
        assert len(validation) == round(0.2 * len(train | validation)) == round(0.2 * len(digits_of("train")))
    before = found.train.images.clone()
    found.train.renew(generator(0, "epoch", 1))
    assert not torch.equal(found.train.images, before)
    assert not shown(found.train) & validation


@pytest.mark.parametrize("shift_by", [4, 6])
def test_overlaid_digits_have_two_classes_and_are_a_clipped_sum(shift_by):
    pairs = overlay_digits(DIGITS, 200, generator(0, "pairs"), shift_by=shift_by)
    assert (pairs.labels[:, 0] != pairs.labels[:, 1]).all()
    total = pairs.digits.int().sum(1, keepdim=True).clamp(max=255)
    assert torch.equal(pairs.images.int(), total)


def test_overlaid_digits_move_as_far_as_they_are_told():
    data = DIGITS.with_images(square().repeat(2, 1, 1, 1)[: len(DIGITS)])
    for shift_by, first in ((4, {4, 12}), (6, {2, 14})):
        digits = overlay_digits(data, 300, generator(0, "pairs"), shift_by=shift_by).digits
        starts = (digits > 0).any(3).int().argmax(2)  # the first filled row
        assert {int(starts.min()), int(starts.max())} == first


def test_how_many_digits_are_changed_at_once_does_not_change_them(monkeypatch):
    def made():
        pairs = overlay_digits(DIGITS, 50, generator(0, "pairs"))
        return pairs.images, pairs.digits, corrupt_images(DIGITS.images, "blur", 3)

    whole = made()
    for module in (multi, corrupt):
        monkeypatch.setattr(module, "_AT_ONCE", 7)
    assert all(map(torch.equal, made(), whole))


def test_one_class_cannot_be_overlaid():
    one = DIGITS.subset((DIGITS.labels == 3).nonzero().squeeze(1))
    with pytest.raises(UserError, match="two classes"):
        overlay_digits(one, 3, generator(0, "pairs"))


@pytest.mark.parametrize("kind", CORRUPTIONS)
def test_a_stronger_corruption_changes_more_and_repeats_by_seed(kind):
    changes = []
    for strength in range(1, 6):
        changed = corrupt_images(DIGITS.images, kind, strength)
        assert torch.equal(changed, corrupt_images(DIGITS.images, kind, strength))
        changes.append(float((changed.float() - DIGITS.images.float()).square().mean()))
    assert changes == sorted(changes)
    assert changes[0] > 0


def test_blur_spreads_a_point_as_a_gaussian():
    point = torch.zeros(1, 1, 41, 41, dtype=torch.float64)
    point[..., 20, 20] = 1
    spread = blur(point, 2.0)[0, 0]
    at = torch.arange(-20, 21, dtype=torch.float64)
    exact = torch.exp(-at.square() / 8) * (at.abs() <= 6)
    exact = exact / exact.sum()
    torch.testing.assert_close(spread, exact[:, None] * exact)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("affnist_style:copies=40", "1..32"),
        ("multimnist:shift=9", "0..8"),
        ("corrupted_mnist:strength=6", "1..5"),
        ("corrupted_mnist:kind=fog", "expected one of"),
        ("expanded_mnist:base=cifar10", "square grey"),
    ],
)
def test_impossible_settings_are_refused(name, words):
    with pytest.raises(UserError, match=words):
        dataset_info(name)
