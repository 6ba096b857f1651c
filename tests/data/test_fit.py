"""Pictures of any size, brought to a given one, and masks on their way back."""

import numpy as np
import pytest
import torch
from PIL import Image

from torchcaps.data import fit_picture, undo_fit

from refusal import REFUSED

PIXELS = np.arange(6, dtype=np.uint8).reshape(2, 3) * 40


def test_the_middle_of_a_picture_is_kept():
    assert np.array_equal(np.asarray(fit_picture(Image.fromarray(PIXELS), 2, 2)), [[20, 60], [140, 180]])


@pytest.mark.parametrize(("size", "side"), [((90, 60), 60), ((61, 100), 61), ((60, 33), 33)])
def test_only_the_middle_is_kept(size, side):
    columns = torch.arange(size[0]).repeat(size[1], 1)
    square = fit_picture(Image.fromarray(columns.byte().numpy()), side, side)
    left, top = (size[0] - side) / 2, (size[1] - side) / 2
    exact = torch.arange(side) + left  # between two columns, where the margin is odd
    assert square.size == (side, side)
    assert top >= 0
    assert np.abs(np.asarray(square)[:, 1:-1] - exact[1:-1].numpy()).max() <= 0.5


def test_halving_averages_pixels():
    pixels = np.random.default_rng(0).integers(0, 256, (64, 64)).astype(np.uint8)
    halved = np.asarray(fit_picture(Image.fromarray(pixels), 32, 32)).astype(float)
    kernel = np.array([1, 3, 3, 1]) / 8  # a triangle over four pixels
    windows = np.lib.stride_tricks.sliding_window_view(pixels.astype(float), (4, 4))[1::2, 1::2]
    inside = np.einsum("hwyx,y,x->hw", windows, kernel, kernel)
    assert np.abs(halved[1:-1, 1:-1] - inside).max() <= 1


@pytest.mark.parametrize("fit", ["crop", "pad", "stretch"])
def test_a_picture_of_the_right_size_stays_as_it_is(fit):
    picture = Image.fromarray(PIXELS)
    assert fit_picture(picture, 2, 3, fit) is picture
    assert undo_fit(picture, 2, 3, fit) is picture


@pytest.mark.parametrize("is_tall", [False, True])
def test_padding_keeps_the_whole_picture_between_bands_of_zeros(is_tall):
    picture = np.full((4, 2) if is_tall else (2, 4), 9, np.uint8)
    padded = np.asarray(fit_picture(Image.fromarray(picture), 8, 8, "pad"))
    rows = padded.T if is_tall else padded  # the bands of a tall picture stand beside it
    assert np.array_equal(rows[2:6], np.full((4, 8), 9))
    assert not rows[:2].any()
    assert not rows[6:].any()


def test_stretching_changes_proportions():
    columns = np.tile(np.array([10, 200], np.uint8), (4, 1))
    stretched = np.asarray(fit_picture(Image.fromarray(columns), 2, 6, "stretch"))
    assert np.array_equal(stretched[:, [0, 5]], [[10, 200]] * 2)


def test_a_crop_has_the_proportions_that_are_asked_for():
    rows = np.tile(np.arange(60, dtype=np.uint8)[:, None], (1, 30))
    cut = np.asarray(fit_picture(Image.fromarray(rows), 10, 30)).astype(int)
    assert np.array_equal(cut[:, 0], np.arange(25, 35))


@pytest.mark.parametrize("fit", ["crop", "pad", "stretch"])
def test_class_numbers_are_never_mixed(fit):
    mask = Image.fromarray(np.random.default_rng(0).choice([0, 7], (31, 47)).astype(np.uint8))
    assert set(np.unique(fit_picture(mask, 20, 20, fit, is_mask=True))) == {0, 7}


@pytest.mark.parametrize("size", [(40, 40), (40, 80), (80, 40)])
@pytest.mark.parametrize("fit", ["crop", "pad", "stretch"])
def test_a_mask_finds_its_way_back(fit, size):
    """A box in the middle, which no rule cuts, returns to its place up to a pixel at each edge."""
    mask = np.zeros(size, np.uint8)
    top, left = size[0] // 2 - 10, size[1] // 2 - 10
    mask[top : top + 20, left : left + 20] = 1
    small = fit_picture(Image.fromarray(mask), 20, 20, fit, is_mask=True)
    back = np.asarray(undo_fit(small, *size, fit))
    assert back.shape == size
    assert not back[: top - 2].any()
    assert not back[top + 22 :].any()
    assert not back[:, : left - 2].any()
    assert not back[:, left + 22 :].any()
    assert back[top + 2 : top + 18, left + 2 : left + 18].all()


def test_what_a_crop_did_not_see_is_background():
    back = np.asarray(undo_fit(Image.fromarray(np.ones((10, 10), np.uint8)), 10, 30))
    assert back[:, 10:20].all()
    assert not back[:, :10].any()
    assert not back[:, 20:].any()


def test_an_unknown_rule_is_refused():
    with pytest.raises(REFUSED, match="fit"):
        fit_picture(Image.fromarray(PIXELS), 4, 4, "squeeze")
