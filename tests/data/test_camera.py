import math

import pytest
import torch

from torchcaps.core import UserError
from torchcaps.data import Augment, augment, draw_numbers
from torchcaps.data.camera import motion_blur, shift_colours


def pictures(count=4):
    return torch.rand(count, 3, 12, 10, generator=torch.Generator().manual_seed(0))


def seeded():
    return torch.Generator().manual_seed(3)


def test_no_turn_and_factor_one_keep_the_colours():
    images = pictures()
    assert torch.allclose(shift_colours(images, torch.zeros(4), torch.ones(4)), images, atol=1e-5)


def test_brightness_survives_any_hue_and_saturation():
    images = pictures()
    changed = shift_colours(images, torch.rand(4) * 6, torch.rand(4) * 2)
    luma = torch.tensor([0.299, 0.587, 0.114])[:, None, None]
    assert torch.allclose((changed * luma).sum(1), (images * luma).sum(1), atol=1e-4)


def test_without_saturation_an_image_is_grey():
    grey = shift_colours(pictures(), torch.zeros(4), torch.zeros(4))
    assert torch.allclose(grey[:, :1].expand_as(grey), grey, atol=1e-4)


def test_blur_along_a_row_spreads_a_point_along_its_row_alone():
    images = torch.zeros(1, 1, 11, 11)
    images[0, 0, 5, 5] = 1
    blurred = motion_blur(images, torch.tensor([4.0]), torch.tensor([0.0]), 4.0)[0, 0]
    assert blurred.sum() == pytest.approx(1, abs=1e-5)
    assert torch.allclose(blurred.sum(1)[5], torch.tensor(1.0))
    assert (blurred[5] > 1e-6).nonzero().flatten().tolist() == [3, 4, 5, 6, 7]
    assert torch.allclose(blurred[5], blurred[5].flip(0), atol=1e-6)


def test_blur_of_no_length_changes_nothing():
    images = pictures()
    assert torch.allclose(motion_blur(images, torch.zeros(4), torch.rand(4), 6.0), images, atol=1e-6)


def test_noise_has_at_most_the_given_deviation():
    images = torch.full((200, 1, 16, 16), 0.5)
    found = augment(images, Augment(noise=0.1), seeded())
    deviations = (found - images).flatten(1).std(1)
    assert deviations.max() < 0.12
    assert deviations.mean() == pytest.approx(0.05, abs=0.01)


def test_changes_of_a_camera_leave_the_other_draws_as_they_were():
    images = pictures()
    plain = augment(images, Augment(shift=2, brightness=0.2), seeded())
    both = augment(images, Augment(shift=2, brightness=0.2, hue=1e-9), seeded())
    assert torch.allclose(plain, both, atol=1e-5)


def test_changes_of_a_camera_need_a_generator():
    with pytest.raises(UserError, match="need a generator"):
        augment(pictures(), Augment(hue=10.0), draw_numbers(4, seeded()))


@pytest.mark.parametrize("key", ["hue", "saturation", "motion_blur", "noise"])
def test_negative_settings_are_refused(key):
    with pytest.raises(UserError, match=key):
        Augment(**{key: -0.1})


def test_a_hue_of_a_third_turn_moves_the_strongest_channel():
    red = torch.tensor([1.0, 0, 0])[None, :, None, None].expand(1, 3, 2, 2)
    turned = shift_colours(red, torch.tensor([math.radians(120)]), torch.ones(1))[0, :, 0, 0]
    assert turned.argmax() != 0


def test_a_blur_longer_than_the_image_is_refused():
    with pytest.raises(UserError, match="motion_blur must be at most the 8 pixels of an image, got 1e\\+30"):
        motion_blur(torch.rand(2, 3, 8, 6), torch.zeros(2), torch.zeros(2), 1e30)
