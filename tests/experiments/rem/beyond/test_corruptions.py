import pytest
import torch

from torchcaps.experiments.rem.beyond.corruptions import CORRUPTIONS, corrupt


@pytest.fixture
def images():
    return torch.randint(256, (6, 1, 28, 28), generator=torch.Generator().manual_seed(1), dtype=torch.uint8)


@pytest.mark.parametrize("name", CORRUPTIONS)
def test_every_corruption_changes_images_the_same_way_each_time(name, images):
    changed = corrupt(images, name)
    assert changed.shape == images.shape
    assert torch.equal(changed, corrupt(images, name))
    assert not torch.equal(changed, images)


@pytest.mark.parametrize("name", ["mirrored", "inverted"])
def test_twice_mirrored_or_inverted_is_as_before(name, images):
    assert torch.equal(corrupt(corrupt(images, name), name), images)


def test_a_grey_square_hides_a_part_of_each_image():
    changed = corrupt(torch.zeros(50, 1, 28, 28, dtype=torch.uint8), "occlusion")
    is_hidden = changed[:, 0] == 128
    assert (is_hidden.sum((1, 2)) == 11 * 11).all()
    assert (is_hidden.any(1).sum(1) == 11).all()  # as many columns: it is a square
    assert len({tuple(row) for row in is_hidden.flatten(1).int().tolist()}) > 10  # not always the same place
    assert not (changed[~is_hidden.unsqueeze(1)]).any()


def test_blur_spreads_a_point_like_a_gaussian():
    point = torch.zeros(1, 1, 29, 29, dtype=torch.uint8)
    point[0, 0, 14, 14] = 255
    spread = corrupt(point, "blur")[0, 0].float()
    assert torch.equal(spread, spread.T)
    assert torch.equal(spread, spread.flip(0))
    assert spread[14, 14] == pytest.approx(255 / (2 * torch.pi * 4), abs=1)
    assert spread[14, 16] / spread[14, 14] == pytest.approx(torch.e**-0.5, abs=0.08)


def test_noise_has_its_deviation():
    grey = torch.full((20, 1, 28, 28), 127, dtype=torch.uint8)
    assert (corrupt(grey, "noise").float() / 255).std() == pytest.approx(0.3, abs=0.03)  # clipped at the ends
