"""Batched changes against a slow loop over images."""

import math

import pytest
import torch
from torch.testing import assert_close

from torchcaps.core import UserError
from torchcaps.core.seeding import generator
from torchcaps.data import (
    AffineLimits,
    affine,
    center_crop,
    erase,
    horizontal_flip,
    jitter,
    random_crop,
    shift,
    shift_in_margins,
    standardize,
    warp,
)
from torchcaps.data.corrupt import occlude
from torchcaps.data.preprocess import to_unit
from torchcaps.data.warp import inverse_map

BATCH, CHANNELS, HEIGHT, WIDTH = 24, 2, 9, 12
CONTRAST = (0.2, 1.8)
LIMITS = AffineLimits(rotation=30.0, shear=0.2, scale=0.2, translation=0.1, squish=0.25)
CHANGES = {
    "shift": (2, lambda images, draws: shift(images, 3, draws)),
    "shift_in_margins": (2, shift_in_margins),
    "random_crop": (2, lambda images, draws: random_crop(images, 5, draws)),
    "horizontal_flip": (1, horizontal_flip),
    "jitter": (3, lambda images, draws: jitter(images, draws, brightness=0.3, gain=0.1, contrast=CONTRAST)),
    "erase": (2, lambda images, draws: erase(images, 4, draws)),
    "affine": (8, lambda images, draws: affine(images, LIMITS, draws)),
}


@pytest.fixture
def images():
    return torch.rand(BATCH, CHANNELS, HEIGHT, WIDTH, generator=generator(0, "images"))


def draws_for(count):
    return torch.rand(BATCH, count, generator=generator(0, "draws"))


@pytest.mark.parametrize("name", CHANGES)
def test_an_image_does_not_see_its_neighbours(name, images):
    count, change = CHANGES[name]
    draws = draws_for(count)
    together = change(images, draws)
    for index in (0, 7, BATCH - 1):
        assert_close(change(images[index : index + 1], draws[index : index + 1])[0], together[index])


@pytest.mark.parametrize("name", CHANGES)
def test_the_same_seed_gives_the_same_images_and_another_seed_others(name, images):
    _, change = CHANGES[name]
    images[:, :, :2] = images[:, :, :, :2] = 0  # margins to move in
    first = change(images, generator(1))
    assert torch.equal(change(images, generator(1)), first)
    assert not torch.equal(change(images, generator(2)), first)


@pytest.mark.parametrize("name", CHANGES)
def test_the_global_random_state_is_left_alone(name, images):
    state = torch.get_rng_state()
    CHANGES[name][1](images, generator(1))
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize("name", CHANGES)
def test_double_precision_is_kept(name, images):
    count, change = CHANGES[name]
    assert change(images.double(), draws_for(count)).dtype == torch.float64


def test_a_shift_moves_whole_pixels_and_fills_with_zeros(images):
    limit, draws = 3, draws_for(2)
    expected = torch.zeros_like(images)
    for index in range(BATCH):
        down, right = (int(draw * (2 * limit + 1)) - limit for draw in draws[index])
        for row in range(HEIGHT):
            for column in range(WIDTH):
                if 0 <= row - down < HEIGHT and 0 <= column - right < WIDTH:
                    expected[index, :, row, column] = images[index, :, row - down, column - right]
    assert torch.equal(shift(images, limit, draws), expected)


def test_every_shift_within_the_limit_occurs_and_none_beyond():
    images = torch.zeros(2000, 1, 7, 7)
    images[:, :, 3, 3] = 1
    places = shift(images, 2, generator(0))[:, 0].nonzero()[:, 1:] - 3
    assert places.unique(dim=0).tolist() == [[down, right] for down in range(-2, 3) for right in range(-2, 3)]


def test_a_shift_within_the_margins_loses_no_ink(images):
    images[:, :, :3] = 0
    images[:, :, :, :2] = 0
    images[:, :, :, -4:] = 0
    images[3] = 0
    moved = shift_in_margins(images, generator(0))
    assert_close(moved.sum((2, 3)), images.sum((2, 3)))
    tops = (moved != 0).any(1).any(2).long().argmax(1)
    lefts = (moved != 0).any(1).any(1).long().argmax(1)
    assert set(tops.tolist()) == {0, 1, 2, 3}
    assert set(lefts.tolist()) == {0, 1, 2, 3, 4, 5, 6}


def test_a_random_crop_is_a_window_of_the_image(images):
    size, draws = 5, draws_for(2)
    cropped = random_crop(images, size, draws)
    for index in range(BATCH):
        top, left = (
            int(draw * (n - size + 1)) for draw, n in zip(draws[index], (HEIGHT, WIDTH), strict=True)
        )
        assert torch.equal(cropped[index], images[index, :, top : top + size, left : left + size])


def test_a_crop_of_the_full_size_changes_nothing():
    images = torch.rand(3, 1, 6, 6, generator=generator(0))
    assert torch.equal(random_crop(images, 6, generator(0)), images)
    assert torch.equal(center_crop(images, 6), images)


def test_a_centre_crop_leaves_equal_margins():
    image = torch.arange(36.0).view(1, 1, 6, 6)
    assert center_crop(image, 2).flatten().tolist() == [14, 15, 20, 21]
    wide = torch.arange(32.0).view(1, 1, 4, 8)
    assert center_crop(wide, (2, 3)).flatten().tolist() == [10, 11, 12, 18, 19, 20]


@pytest.mark.parametrize("change", [center_crop, lambda x, n: random_crop(x, n, generator(0))])
def test_a_window_larger_than_the_image_is_refused(change, images):
    with pytest.raises(UserError, match="does not fit images of 12x9"):
        change(images, 10)


def test_a_flip_mirrors_about_half_of_the_images(images):
    draws = draws_for(1)
    flipped = horizontal_flip(images, draws)
    for index in range(BATCH):
        expected = images[index].flip(-1) if draws[index, 0] < 0.5 else images[index]
        assert torch.equal(flipped[index], expected)


def test_jitter_scales_adds_and_stretches(images):
    draws = draws_for(3)
    found = jitter(images, draws, brightness=0.3, gain=0.1, contrast=CONTRAST)
    for index in range(BATCH):
        brightness, gain, contrast = draws[index].tolist()
        for channel in range(CHANNELS):
            image = images[index, channel] * (1 + 0.1 * (2 * gain - 1)) + 0.3 * (2 * brightness - 1)
            expected = (image - image.mean()) * (0.2 + 1.6 * contrast) + image.mean()
            assert_close(found[index, channel], expected)


def test_erasing_sets_one_square_to_zero(images):
    size, draws = 4, draws_for(2)
    expected = images.clone()
    for index in range(BATCH):
        top, left = (
            int(draw * (n - size + 1)) for draw, n in zip(draws[index], (HEIGHT, WIDTH), strict=True)
        )
        expected[index, :, top : top + size, left : left + size] = 0
    assert torch.equal(erase(images, size, draws), expected)


def test_a_standardized_image_has_mean_zero_and_deviation_one(images):
    images[2] = 0.7
    found = standardize(images)
    for index in (0, 1, 3):
        assert_close(found[index], (images[index] - images[index].mean()) / images[index].std(correction=0))
    assert_close(found[2], torch.zeros_like(found[2]), atol=1e-4, rtol=0)


def slow_warp(image, forward, move):
    """One image under p -> forward p + move, interpolated pixel by pixel; p is (x, y) from the centre."""
    height, width = image.shape[1:]
    backward, result = torch.linalg.inv(forward), torch.zeros_like(image)
    for row in range(height):
        for column in range(width):
            point = torch.tensor([column - (width - 1) / 2, row - (height - 1) / 2], dtype=image.dtype)
            x, y = (backward @ (point - move) + torch.tensor([(width - 1) / 2, (height - 1) / 2])).tolist()
            for near_row in (math.floor(y), math.floor(y) + 1):
                for near_column in (math.floor(x), math.floor(x) + 1):
                    if 0 <= near_row < height and 0 <= near_column < width:
                        weight = (1 - abs(x - near_column)) * (1 - abs(y - near_row))
                        result[:, row, column] += weight * image[:, near_row, near_column]
    return result


def test_an_affine_map_agrees_with_interpolating_each_pixel(images):
    images, draws = images[:6].double(), draws_for(8)[:6].double()
    found = affine(images, LIMITS, draws)
    for index, draw in enumerate(draws):
        signed = (2 * draw - 1).tolist()
        angle = math.radians(30 * signed[0])
        squeeze = torch.diag(torch.tensor([1 - 0.25 * draw[7].item(), 1.0], dtype=torch.float64))
        # counter-clockwise on the screen, where y points down
        turn = torch.tensor(
            [[math.cos(angle), math.sin(angle)], [-math.sin(angle), math.cos(angle)]], dtype=torch.float64
        )
        slant = torch.tensor([[1.0, 0.2 * signed[2]], [0.0, 1.0]], dtype=torch.float64)
        scale = torch.diag(torch.tensor([1 + 0.2 * signed[3], 1 + 0.2 * signed[4]], dtype=torch.float64))
        move = torch.tensor([0.1 * WIDTH * signed[5], 0.1 * HEIGHT * signed[6]], dtype=torch.float64)
        assert_close(found[index], slow_warp(images[index], squeeze @ turn @ slant @ scale, move))


def test_a_quarter_turn_is_counter_clockwise():
    image = torch.rand(1, 1, 8, 8, generator=generator(0), dtype=torch.float64)
    one = torch.ones(1, dtype=torch.float64)
    inverse = inverse_map(90 * one, 0 * one, torch.ones(1, 2, dtype=torch.float64), one)
    assert_close(warp(image, inverse, torch.zeros(1, 2, dtype=torch.float64)), image.rot90(1, (2, 3)))


def test_a_whole_move_equals_a_shift():
    image = torch.rand(1, 1, 8, 8, generator=generator(0), dtype=torch.float64)
    moved = warp(
        image, torch.eye(2, dtype=torch.float64)[None], torch.tensor([[2.0, -1.0]], dtype=torch.float64)
    )
    assert_close(moved[..., :-1, 2:], image[..., 1:, :-2])
    assert_close(moved[..., -1:, :], torch.zeros(1, 1, 1, 8, dtype=torch.float64))


def test_limits_of_zero_change_nothing(images):
    assert_close(affine(images, AffineLimits(), draws_for(8)), images, atol=1e-5, rtol=1e-5)


def test_only_the_given_share_of_images_turns(images):
    draws = draws_for(8)
    turned = affine(images, AffineLimits(rotation=40.0, rotation_probability=0.5), draws)
    is_same = (turned - images).abs().amax((1, 2, 3)) < 1e-5
    assert torch.equal(is_same, draws[:, 1] >= 0.5)


def test_normal_angles_stay_within_the_limit():
    image = torch.zeros(4000, 1, 3, 3)
    draws = torch.rand(4000, 8, generator=generator(0))
    draws[0, 0] = 0.0  # the normal quantile of 0 is minus infinity
    turned = affine(image + 1, AffineLimits(rotation=10.0, rotation_law="normal"), draws)
    assert turned.isfinite().all()


def test_squishing_narrows_by_at_most_the_limit():
    images = torch.ones(200, 1, 5, 40)
    widths = affine(images, AffineLimits(squish=0.25), generator(0))[:, 0, 2].sum(1)
    assert 29.5 < widths.min() < 32
    assert 39 < widths.max() <= 40


def test_a_generator_on_another_device_is_refused(images):
    with pytest.raises(UserError, match="the generator is on"):
        shift(images.to("meta"), 1, generator(0))


def test_bytes_become_shares_of_one_and_other_numbers_stay_or_are_refused():
    pixels = torch.tensor([0, 51, 255], dtype=torch.uint8).view(1, 1, 1, 3)
    assert_close(to_unit(pixels), torch.tensor([0, 0.2, 1]).view(1, 1, 1, 3))
    assert to_unit(pixels.double()).max() == 255
    with pytest.raises(UserError, match=r"uint8 or floating point, got torch\.int64"):
        to_unit(pixels.long())


def test_a_grey_rectangle_hides_its_share_of_both_sides():
    hidden = occlude(torch.zeros(1500, 1, 10, 20), 0.4, generator(0))[:, 0] == 0.5
    assert (hidden.any(2).sum(1) == 4).all()
    assert (hidden.any(1).sum(1) == 8).all()
    assert (hidden.sum((1, 2)) == 32).all()
    assert hidden.any(0).all()  # every place can be hidden
