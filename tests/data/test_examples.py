"""Images with targets of each kind."""

import pytest
import torch
from PIL import Image
from torch.utils.data import DataLoader

from torchcaps.core import UserError
from torchcaps.core.rotation import random_rotations
from torchcaps.data import (
    FileImages,
    LabelledImages,
    MaskedImages,
    PlacedImages,
    PosedImages,
    as_bytes,
)

from refusal import REFUSED

CLASSES = ("a", "b", "c")


def numbered(count: int = 40) -> torch.Tensor:
    return torch.arange(count, dtype=torch.uint8).view(-1, 1, 1, 1).expand(-1, 1, 4, 4).contiguous()


def some_images(count: int = 40) -> LabelledImages:
    return LabelledImages(numbered(count), torch.arange(count) % 3, CLASSES)


def each_kind(count: int = 8):
    numbers = torch.arange(count) % 3
    rotations = random_rotations(count, torch.Generator().manual_seed(0))
    return [
        LabelledImages(numbered(count), numbers, CLASSES),
        MaskedImages(numbered(count), numbered(count) % 4, CLASSES),
        PosedImages(numbered(count), numbers, rotations, CLASSES),
        PlacedImages(numbered(count), numbers, CLASSES),
    ]


def test_a_subset_keeps_images_and_labels_together():
    data = some_images()
    part = data.subset([7, 2])
    assert len(part) == 2
    assert part.images[:, 0, 0, 0].tolist() == [7, 2]
    assert part.labels.tolist() == [1, 2]
    assert part.classes == data.classes


def test_labels_that_replace_others_go_with_their_images():
    data = LabelledImages(torch.zeros(3, 1, 4, 4, dtype=torch.uint8), torch.tensor([0, 1, 0]), ("a", "b"))
    data.labels = torch.tensor([1, 0, 0])
    assert data.subset([0]).labels.tolist() == data.at(torch.tensor([0]))[1].tolist() == [1]


def test_moving_to_a_device_keeps_everything():
    moved = some_images().to("cpu")
    assert len(moved) == 40
    assert moved.classes == ("a", "b", "c")


@pytest.mark.parametrize(
    ("images", "labels"),
    [
        (torch.zeros(2, 4, 4, dtype=torch.uint8), torch.zeros(2, dtype=torch.int64)),
        (torch.zeros(2, 1, 4, 4), torch.zeros(2, dtype=torch.int64)),
        (torch.zeros(2, 1, 4, 4, dtype=torch.uint8), torch.zeros(3, dtype=torch.int64)),
        (torch.zeros(2, 1, 4, 4, dtype=torch.uint8), torch.zeros(2)),
    ],
    ids=["no channels", "not bytes", "too many labels", "labels not whole"],
)
def test_wrong_shapes_and_types_are_refused(images, labels):
    with pytest.raises(REFUSED):
        LabelledImages(images, labels, ("a",))


@pytest.mark.parametrize("label", [-1, 3])
def test_a_label_without_a_class_is_refused(label):
    with pytest.raises(UserError, match=r"0\.\.2"):
        LabelledImages(torch.zeros(1, 1, 2, 2, dtype=torch.uint8), torch.tensor([label]), ("a", "b", "c"))


def parts(targets):
    return targets if isinstance(targets, tuple) else (targets,)


@pytest.mark.parametrize("data", each_kind(), ids=lambda data: type(data).__name__)
def test_images_and_targets_of_each_kind_stay_together(data):
    chosen = torch.tensor([5, 1])
    part = data.subset(chosen).to("cpu")
    assert type(part) is type(data)
    assert part.images[:, 0, 0, 0].tolist() == [5, 1]
    expected = parts(data.targets_at(chosen))
    assert all(map(torch.equal, parts(part.targets_at(torch.arange(2))), expected))
    image, *targets = part[0]
    assert torch.equal(image, data.images[5])
    assert all(map(torch.equal, targets, (values[0] for values in expected)))
    others = data.with_images(255 - data.images)
    assert all(map(torch.equal, parts(others.targets_at(chosen)), expected))


@pytest.mark.parametrize("data", each_kind(), ids=lambda data: type(data).__name__)
def test_batches_cover_a_split_in_order(data):
    batches = list(data.batches(3))
    assert [len(images) for images, _ in batches] == [3, 3, 2]
    assert torch.equal(torch.cat([images for images, _ in batches]), data.images)
    everything = parts(data.targets_at(torch.arange(8)))
    for number, whole in enumerate(everything):
        assert torch.equal(torch.cat([parts(targets)[number] for _, targets in batches]), whole)


@pytest.mark.parametrize("data", each_kind(), ids=lambda data: type(data).__name__)
def test_a_loader_of_pytorch_takes_examples(data):
    images, *targets = next(iter(DataLoader(data, batch_size=4)))
    assert torch.equal(images, data.images[:4])
    assert all(map(torch.equal, targets, parts(data.targets_at(torch.arange(4)))))


def test_masks_and_rotations_must_fit_their_images():
    images = numbered(2)
    with pytest.raises(REFUSED, match="masks"):
        MaskedImages(images, images[:1], CLASSES)
    with pytest.raises(UserError, match="class numbers up to 3, got 4"):
        MaskedImages(images, torch.full_like(images, 4), CLASSES)
    with pytest.raises(UserError, match="unit quaternions"):
        PosedImages(images, torch.zeros(2, dtype=torch.int64), torch.ones(2, 4), CLASSES)
    with pytest.raises(UserError, match=r"places must lie in 0\.\.2"):
        PlacedImages(images, torch.tensor([0, 3]), CLASSES)


def test_images_in_files_are_indexed_like_a_tensor(tmp_path):
    whole = numbered(6)
    files = [tmp_path / f"{number}.png" for number in range(6)]
    for path, image in zip(files, whole, strict=True):
        Image.fromarray(image[0].numpy()).save(path)
    images = FileImages(files, lambda path: as_bytes(Image.open(path)))
    data = LabelledImages(images, torch.arange(6) % 3, CLASSES)
    assert images.shape == whole.shape
    assert not data.is_in_memory
    assert torch.equal(data.images[2:4], whole[2:4])
    data.expect(torch.tensor([5, 0]))
    assert torch.equal(data.images[torch.tensor([0, 5, 3])], whole[[0, 5, 3]])
    part = data.subset([4, 1]).to("cpu")
    assert torch.equal(part.images[torch.arange(2)], whole[[4, 1]])
    assert part.labels.tolist() == [1, 1]


def test_examples_that_are_drawn_are_renewed_in_place():
    def remake(count, random, device):
        labels = torch.randint(3, (count,), generator=random)
        return labels.byte().view(-1, 1, 1, 1).expand(-1, 1, 4, 4), labels

    data = some_images().drawn_by(remake)
    train, validation = data.subset(torch.arange(30)).to("cpu"), data.subset(torch.arange(30, 40))
    images, kept = train.images, validation.images.clone()
    assert train.can_be_renewed
    train.renew(torch.Generator().manual_seed(5))
    assert train.images is images
    assert torch.equal(images[:, 0, 0, 0], train.labels.byte())
    assert torch.equal(train.labels, torch.randint(3, (30,), generator=torch.Generator().manual_seed(5)))
    assert torch.equal(validation.images, kept)
    assert torch.equal(data.images, some_images().images)


def test_stored_examples_cannot_be_renewed():
    data = some_images()
    assert not data.can_be_renewed
    with pytest.raises(UserError, match="cannot be drawn anew"):
        data.renew(torch.Generator())
