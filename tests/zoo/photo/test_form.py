"""The form of a digit in MNIST, from strokes made by hand."""

import numpy as np
import pytest
from PIL import Image
from zoo.handwriting import on_paper, written

from torchcaps.zoo import prepare_digit
from torchcaps.zoo.photo.form import centred, thickened


def test_a_digit_whose_mass_lies_at_one_side_stays_in_the_picture():
    digit = np.zeros((20, 20))
    digit[:, 0], digit[0] = 1, 0.2
    found = np.asarray(centred(digit), dtype=float)
    rows, columns = np.nonzero(found)
    assert (np.ptp(rows) + 1, np.ptp(columns) + 1) == (20, 20)
    assert columns.max() == 27  # as near to the middle as it goes


def test_a_thin_stroke_is_as_bright_as_a_thick_one():
    for width in (2, 40):
        digit = np.zeros((200, 100))
        digit[:, 50 : 50 + width] = 1.0
        assert np.asarray(centred(digit)).max() == 255


def cross(pen):
    """Strokes of `pen` pixels of the final size, 200 pixels high."""
    digit, half = np.zeros((200, 200)), round(5 * pen)
    digit[:, 100 - half : 100 + half] = digit[100 - half : 100 + half] = 1.0
    return digit


def width(digit):
    """How many pixels wide the vertical stroke is in the picture, at a quarter of its height."""
    levels = np.asarray(centred(digit), dtype=float)
    return levels[9].sum() / 255


@pytest.mark.parametrize("pen", [0.4, 0.8, 1.0])
def test_thin_strokes_become_a_pixel_wider_and_the_digit_stays_as_large(pen):
    thin = cross(pen)
    wide = thickened(thin)
    assert width(wide) == pytest.approx(pen + 1, abs=0.3)
    rows, columns = np.nonzero(np.asarray(centred(wide)))
    assert (np.ptp(rows) + 1, np.ptp(columns) + 1) == (20, 20)


@pytest.mark.parametrize("pen", [1.6, 2.4, 4.0])
def test_strokes_as_wide_as_those_of_mnist_stay(pen):
    digit = cross(pen)
    assert thickened(digit) is digit


@pytest.mark.parametrize(("pen", "is_thin"), [(4, True), (9, True), (30, False)])
def test_the_answer_says_that_strokes_were_widened(pen, is_thin):
    page = Image.fromarray(on_paper(written("4", pen=pen)).astype(np.uint8))
    assert ("thin strokes widened" in prepare_digit(page).words) is is_thin
