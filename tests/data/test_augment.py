"""Augmentation and preprocessing as settings."""

import dataclasses
import sys

import pytest
import torch
from torch.testing import assert_close

from torchcaps.core import UserError
from torchcaps.core.seeding import generator
from torchcaps.data import (
    Augment,
    Preprocess,
    affine,
    augment,
    augment_pairs,
    dataset_info,
    draw_numbers,
    erase,
    horizontal_flip,
    jitter,
    load_dataset,
    normalize,
    preprocess,
    random_crop,
    resize_and_crop,
    resize_and_crop_pairs,
    shift,
    shift_in_margins,
    standardize,
)

EVERYTHING = Augment(
    shift=2,
    margin_shift=True,
    crop=24,
    flip=True,
    rotation=20.0,
    rotation_probability=0.5,
    rotation_law="normal",
    shear=0.1,
    scale=0.1,
    translation=0.1,
    squish=0.2,
    brightness=0.2,
    brightness_gain=0.1,
    contrast=(0.5, 1.5),
    erase=4,
)


@pytest.fixture
def images():
    return torch.rand(16, 3, 32, 32, generator=generator(0, "images"))


def test_no_settings_mean_no_change(images):
    assert torch.equal(augment(images, Augment(), generator(0)), images)


def test_everything_at_once_keeps_the_form_and_is_repeatable(images):
    found = augment(images, EVERYTHING, generator(5))
    assert found.shape == (16, 3, 24, 24)
    assert found.isfinite().all()
    assert torch.equal(augment(images, EVERYTHING, generator(5)), found)
    assert torch.equal(augment(images, EVERYTHING, draw_numbers(16, generator(5))), found)


def test_an_image_does_not_see_its_neighbours(images):
    draws = draw_numbers(16, generator(1))
    together = augment(images, EVERYTHING, draws)
    assert_close(augment(images[3:4], EVERYTHING, draws[3:4])[0], together[3])
    others = torch.rand(images.shape, generator=generator(9))
    others[3] = images[3]
    assert_close(augment(others, EVERYTHING, draws)[3], together[3])


def test_switching_one_change_on_leaves_the_draws_of_the_others(images):
    draws = draw_numbers(16, generator(1))
    flipped = augment(images, Augment(flip=True), draws)
    both = augment(images, Augment(flip=True, shift=2), draws)
    assert torch.equal(flipped, horizontal_flip(images, draws[:, 10:11]))
    assert torch.equal(both, shift(flipped, 2, draws[:, 11:13]))


def test_changes_come_in_the_order_that_is_written_down(images):
    """Affine map, crop, flip, shift, jitter, erasing: an erased square must stay black and whole."""
    draws = draw_numbers(16, generator(1))
    columns = torch.split(draws, [8, 2, 1, 2, 2, 3, 2], dim=1)
    turned, cropped, flipped, shifted, moved, jittered, erased = columns
    expected = affine(images, EVERYTHING.affine_limits, turned)
    expected = horizontal_flip(random_crop(expected, 24, cropped), flipped)
    expected = shift_in_margins(shift(expected, 2, shifted), moved)
    expected = jitter(expected, jittered, brightness=0.2, gain=0.1, contrast=(0.5, 1.5))
    assert torch.equal(augment(images, EVERYTHING, draws), erase(expected, 4, erased))


def test_normal_rotations_deviate_by_a_third_of_the_limit_and_are_clipped(monkeypatch):
    module, angles = sys.modules["torchcaps.data.warp"], []
    found = module.inverse_map
    monkeypatch.setattr(module, "inverse_map", lambda *values: angles.append(values[0]) or found(*values))
    settings = Augment(rotation=30.0, rotation_law="normal", rotation_probability=0.5)
    augment(torch.zeros(20_000, 1, 2, 2), settings, generator(0))
    turned = angles[0][angles[0] != 0]
    assert len(turned) / 20_000 == pytest.approx(0.5, abs=0.02)
    assert turned.std().item() == pytest.approx(10, rel=0.03)
    assert turned.abs().max() == 30


def drawn_pairs(size=(24, 32)):
    """Masks of two classes, and images with a channel for each of them and for the background."""
    masks = torch.zeros(16, *size, dtype=torch.uint8)
    masks[:, 6:15, 8:14], masks[:, 9:18, 17:27] = 1, 3
    return torch.stack([masks == number for number in (0, 1, 3)], dim=1).float(), masks


MOVES = {
    "shift": {"shift": 4},
    "crop": {"crop": (16, 20)},
    "flip": {"flip": True},
    "rotation": {"rotation": 40.0},
    "shear": {"shear": 0.3},
    "scale": {"scale": 0.4},
    "translation": {"translation": 0.3},
    "squish": {"squish": 0.5},
    "all": {"shift": 2, "crop": (16, 20), "flip": True, "rotation": 30.0, "scale": 0.2},
}


@pytest.mark.parametrize("name", MOVES)
@pytest.mark.parametrize("settings", [Preprocess(), Preprocess(resize=(48, 64)), Preprocess(pad=3)])
def test_masks_move_with_their_images_and_keep_class_numbers(name, settings):
    images, masks = drawn_pairs()
    still, _ = resize_and_crop_pairs(images, masks, settings)
    moved, found = resize_and_crop_pairs(images, masks, settings, Augment(**MOVES[name]), generator(0))
    assert moved.shape[2:] == found.shape[1:]
    assert moved.shape != still.shape or (moved != still).flatten(1).any(1).sum() >= 4
    for channel, number in enumerate((0, 1, 3)):
        is_pure = moved[:, channel] > 0.99  # elsewhere an image mixes classes, or nothing was there
        assert is_pure.any()
        assert (found[is_pure] == number).all()
    assert set(found.unique().tolist()) == {0, 1, 3}


def test_masks_move_into_the_margins_that_their_images_have():
    images, masks = drawn_pairs()
    images = images[:, 1:]  # the background is black
    moved, found = augment_pairs(images, masks[:, None].float(), Augment(margin_shift=True), generator(0))
    assert not torch.equal(moved, images)
    assert torch.equal(moved, torch.cat([found == 1, found == 3], dim=1).float())


@pytest.mark.compile
def test_augmentation_compiles_as_one_graph(images):
    draws = draw_numbers(16, generator(1))
    compiled = torch.compile(augment, fullgraph=True, backend="aot_eager")
    assert_close(compiled(images, EVERYTHING, draws), augment(images, EVERYTHING, draws))


@pytest.mark.compile
def test_preprocessing_compiles_as_one_graph(images):
    settings, info = Preprocess(resize=40, center_crop=24), dataset_info("cifar10")
    compiled = torch.compile(preprocess, fullgraph=True, backend="aot_eager")
    assert_close(compiled(images, settings, info), preprocess(images, settings, info))


@pytest.mark.gpu
def test_a_cuda_graph_replays_training_input_with_fresh_draws():
    images = torch.randint(0, 256, (16, 3, 32, 32), dtype=torch.uint8, device="cuda")
    random, settings, info = generator(0, device="cuda"), Preprocess(pad=2), dataset_info("cifar10")

    def step():
        changed, _ = resize_and_crop_pairs(images, None, settings, EVERYTHING, random)
        return normalize(changed, settings, info)

    step()  # loads kernels, which a capture may not
    graph = torch.cuda.CUDAGraph()
    graph.register_generator_state(random)
    with torch.cuda.graph(graph):
        captured = step()
    random.manual_seed(7)
    graph.replay()
    first = captured.clone()
    graph.replay()
    assert not torch.equal(captured, first)
    random.manual_seed(7)
    assert_close(first, step())


@pytest.mark.parametrize(
    "settings",
    [
        {"shift": -1},
        {"crop": -1},
        {"erase": -2},
        {"rotation": -5.0},
        {"rotation_probability": 1.5},
        {"scale": 1.0},
        {"squish": -0.1},
        {"brightness_gain": 2.0},
        {"contrast": (1.5, 0.5)},
        {"contrast": (-0.5, 0.5)},
    ],
    ids=str,
)
def test_settings_out_of_range_are_refused_by_name(settings):
    with pytest.raises(UserError, match=f"augment.{next(iter(settings))}"):
        Augment(**settings)


@pytest.mark.parametrize("settings", [{"resize": -1}, {"pad": -1}, {"center_crop": -1}], ids=str)
def test_preprocessing_out_of_range_is_refused_by_name(settings):
    with pytest.raises(UserError, match=f"preprocess.{next(iter(settings))}"):
        Preprocess(**settings)


@pytest.mark.parametrize("kind", [Augment, Preprocess])
def test_settings_are_plain_values_that_a_recipe_can_hold(kind):
    for field in dataclasses.fields(kind):
        assert isinstance(getattr(kind(), field.name), int | float | str | tuple | None)


def test_bytes_become_numbers_in_the_unit_range_and_are_normalized():
    data, info = load_dataset("synthetic_cifar10", "test"), dataset_info("synthetic_cifar10")
    found = preprocess(data.images, Preprocess(), info)
    for channel in range(3):
        expected = (data.images[:, channel].float() / 255 - info.mean[channel]) / info.std[channel]
        assert_close(found[:, channel], expected)


def test_other_normalizations_are_per_image_or_none(images):
    info = dataset_info("cifar10")
    assert torch.equal(preprocess(images, Preprocess(normalize="none"), info), images)
    assert_close(preprocess(images, Preprocess(normalize="image"), info), standardize(images))


def test_resizing_padding_and_cropping_give_the_final_size(images):
    assert resize_and_crop(images, Preprocess(resize=48)).shape[2:] == (48, 48)
    assert resize_and_crop(images, Preprocess(resize=24, pad=6)).shape[2:] == (36, 36)
    assert torch.equal(resize_and_crop(images, Preprocess(center_crop=24)), images[:, :, 4:28, 4:28])


def test_resizing_to_half_averages_neighbours():
    images = torch.rand(2, 1, 8, 8, generator=generator(0))
    found = resize_and_crop(images, Preprocess(resize=4))
    assert_close(found.mean((2, 3)), images.mean((2, 3)), atol=0.05, rtol=0)
    flat = torch.full((1, 1, 8, 8), 0.3)
    assert_close(resize_and_crop(flat, Preprocess(resize=4)), torch.full((1, 1, 4, 4), 0.3))


def test_training_crops_at_random_where_evaluation_crops_the_centre(images):
    settings, changes = Preprocess(center_crop=24), Augment(crop=24)
    trained, _ = resize_and_crop_pairs(images, None, settings, changes, generator(0))
    evaluated = resize_and_crop(images, settings)
    assert trained.shape == evaluated.shape == (16, 3, 24, 24)
    assert not torch.equal(trained, evaluated)


def test_channels_that_do_not_fit_the_dataset_are_refused(images):
    with pytest.raises(UserError, match="mnist has 1 channels, the images have 3"):
        preprocess(images, Preprocess(), dataset_info("mnist"))


def test_images_of_whole_numbers_other_than_bytes_are_refused():
    with pytest.raises(UserError, match="uint8"):
        resize_and_crop(torch.zeros(1, 1, 4, 4, dtype=torch.int32), Preprocess())
