"""Sheets of paper and other shapes with four sides, made by hand."""

import numpy as np
import pytest
from PIL import Image, ImageDraw

from torchcaps.zoo.photo.four_sides import is_four_sided
from torchcaps.zoo.photo.sheet import _is_sheet, fill_around, threshold


def polygon(*points):
    picture = Image.new("L", (120, 120))
    ImageDraw.Draw(picture).polygon(points, fill=255)
    return np.asarray(picture) > 0


def test_a_quadrilateral_has_four_sides_and_a_house_has_five():
    assert is_four_sided(polygon((20, 30), (95, 22), (104, 100), (14, 96)))
    assert not is_four_sided(polygon((20, 40), (60, 10), (100, 40), (100, 110), (20, 110)))
    assert not is_four_sided(polygon((5, 50), (115, 50), (115, 62), (5, 62)))  # a stroke is long


def square(first, last):
    pixels = np.zeros((200, 200), bool)
    pixels[first:last, first:last] = True
    return pixels


@pytest.mark.parametrize(
    ("sheet", "is_found"),
    [(square(80, 116), False), (square(80, 125), True), (square(4, 196), True), (square(2, 198), False)],
    ids=["3 %", "5 %", "92 %", "96 %"],
)
def test_a_sheet_covers_neither_little_of_a_photograph_nor_all_of_it(sheet, is_found):
    assert _is_sheet(sheet, sheet) is is_found


def test_thethreshold_parts_few_bright_pixels_from_many_dark_ones():
    draw = np.random.default_rng(0)
    dark, bright = draw.normal(60, 12, 9000), draw.normal(190, 12, 1000)
    levels = np.concatenate([dark, bright]).clip(0, 255)
    best = min(np.linspace(1, 254, 254), key=lambda level: _within(levels, level))
    assert threshold(levels) == pytest.approx(best, abs=3)
    assert dark.mean() + 36 < threshold(levels) < bright.mean() - 36


def _within(levels, level):
    """The sum of squares around the means of both sides (Otsu 1979: where it is least)."""
    sides = (levels[levels <= level], levels[levels > level])
    return sum(((side - side.mean()) ** 2).sum() for side in sides if len(side))


def test_what_is_not_known_is_drawn_on_from_what_is():
    levels, known = np.full((40, 30), 150.0), np.zeros((40, 30), bool)
    known[5:20, 4:25] = True
    levels[~known] = 0
    assert fill_around(levels, known) == pytest.approx(np.full((40, 30), 150.0), abs=1)
