"""Ink is told from shadows, stains and grain, whatever it is written with."""

import numpy as np
import pytest
from PIL import Image
from zoo.handwriting import on_paper, written

from torchcaps.zoo import NoDigitError, prepare_digit
from torchcaps.zoo.photo.digit import _find, _look
from torchcaps.zoo.photo.marks import narrowed
from torchcaps.zoo.photo.size import smaller, strongest_within

SIZE, BOX = (1000, 750), (420, 330, 70, 100)
ROWS, COLUMNS = np.indices(SIZE[::-1])


def prepared(levels):
    return prepare_digit(Image.fromarray(np.clip(levels, 0, 255).astype(np.uint8)))


def ball_pen(digit):
    return written(digit, SIZE, BOX, pen=5)


def corner_in_light(steepness):
    """Light that falls on the lower right corner of a page alone."""
    return 0.5 + 0.5 / (1 + np.exp(-steepness * (COLUMNS / 1000 + ROWS / 750 - 1.35)))


@pytest.mark.parametrize("digit", "036")
def test_a_corner_of_the_page_in_the_light_is_no_digit(digit):
    page = on_paper(ball_pen(digit))
    even, shaded = prepared(page), prepared(page * corner_in_light(30))
    assert "touches the edge" not in shaded.words
    assert np.abs(np.asarray(even.picture, float) - np.asarray(shaded.picture, float)).mean() < 12


def test_a_page_with_nothing_but_a_soft_shadow_is_refused():
    with pytest.raises(NoDigitError, match="no digit to be seen"):
        prepared(on_paper(np.zeros(SIZE[::-1])) * corner_in_light(12))


def in_a_sharp_shadow(levels):
    return levels * np.where(COLUMNS / 1000 + 0.4 * ROWS / 750 < 0.5, 0.5, 1)


@pytest.mark.parametrize("digit", "2678")
def test_the_sharp_edge_of_a_shadow_is_no_digit(digit):
    page = on_paper(ball_pen(digit))
    even, shaded = prepared(page), prepared(in_a_sharp_shadow(page))
    assert np.abs(np.asarray(even.picture, float) - np.asarray(shaded.picture, float)).mean() < 12
    assert "lines" not in shaded.words


@pytest.mark.parametrize("digit", "0458")
def test_pencil_is_darker_than_the_paper_beside_the_sharp_edge_of_a_shadow(digit):
    page = on_paper(0.2 * ball_pen(digit)) + np.random.default_rng(0).normal(0, 3, SIZE[::-1])
    edge = 0.5 + 0.5 / (1 + np.exp(-(COLUMNS + 533 * ROWS / 1000 - 500) / 3))
    assert "inverted (dark on bright)" in prepared(page * edge).words.split(", ")


def test_a_page_with_nothing_but_a_sharp_shadow_is_refused():
    with pytest.raises(NoDigitError, match="no digit to be seen"):
        prepared(in_a_sharp_shadow(on_paper(np.zeros(SIZE[::-1]))))


@pytest.mark.parametrize("pen", [8, 30, 60])
@pytest.mark.parametrize("digit", "0689")
def test_a_digit_that_runs_off_the_picture_is_not_broken_up_on_nearer_paper(digit, pen):
    cut = on_paper(written(digit, (360, 420), (90, 30, 300, 360), pen=pen)).astype(np.uint8)
    picture = Image.fromarray(cut)
    known = np.ones(cut.shape, bool)
    assert np.array_equal(_find(picture, known).found.pixels, _look(picture, known).found.pixels)


def test_a_wide_and_pale_ring_over_thin_strokes_is_no_part_of_the_digit():
    page = on_paper(ball_pen("5"))
    away = np.hypot(ROWS - 300, COLUMNS - 560) - 150
    stained = page * (1 - 0.25 * np.exp(-((away / 9) ** 2)))
    clean, found = (np.asarray(prepared(each).picture, float) for each in (page, stained))
    assert np.abs(clean - found).mean() < 20


def test_thin_and_pale_strokes_are_seen_where_the_working_size_has_lost_them():
    page = on_paper(ball_pen("3"), 215, 186) + np.random.default_rng(0).normal(0, 2, SIZE[::-1])
    assert "cropped to the digit" in prepared(page).words


@pytest.mark.parametrize("digit", "0389")
def test_pencil_over_pale_lines_is_darker_than_the_paper_although_that_is_grainy(digit):
    lines = np.where(ROWS % 76 < 2, 0.25, 0.0)
    grain = np.random.default_rng(0).normal(0, 4, SIZE[::-1])
    page = on_paper(np.maximum(0.35 * ball_pen(digit), lines)) + grain
    assert "inverted (dark on bright)" in prepared(page).words.split(", ")


def test_the_strongest_within_a_pixel_is_at_least_its_mean():
    levels = np.random.default_rng(0).random((90, 120))
    assert strongest_within(levels, 30).shape == smaller(levels, 30).shape == (22, 30)
    assert (strongest_within(levels, 30) + 1e-6 >= smaller(levels, 30)).mean() > 0.99
    assert strongest_within(levels, 30).max() == levels.max()
    assert np.array_equal(strongest_within(levels, 120), levels)


def test_a_shape_is_gone_when_it_is_narrowed_by_more_than_half_its_width():
    page = np.zeros((20, 30), bool)
    page[5:12, 4:24] = True
    assert narrowed(page, 3).sum() == 14
    assert not narrowed(page, 4).any()
