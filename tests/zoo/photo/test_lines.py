"""Ruled and squared paper: its lines go, the strokes on them stay."""

import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageFilter
from zoo.handwriting import on_paper, written

from torchcaps.suites.photographs.camera import take_photograph
from torchcaps.suites.photographs.scene import Scene, draw_chance
from torchcaps.zoo import NoDigitError, prepare_digit
from torchcaps.zoo.photo.lines import without_lines

SIZE, BOX = (1000, 750), (420, 330, 70, 100)
ALL = np.ones(SIZE[::-1], bool)
LEVEL, STEEP, TILTED = (0, 0), (-300, -300), (40, -60)  # how far the first and the last line fall


def lines(falls, spacing=60, size=SIZE, width=2):
    """How much of each pixel is covered by lines from the left to the right edge, through a lens."""
    picture = Image.new("L", size, 0)
    pen = ImageDraw.Draw(picture)
    for start in range(-400, size[1] + 400, spacing):
        fall = np.interp(start, [0, size[1]], falls)
        pen.line([(-10, start), (size[0] + 10, start + fall)], fill=255, width=width)
    return np.asarray(picture.filter(ImageFilter.GaussianBlur(0.8)), dtype=float) / 255


def squares(falls):
    return np.maximum(lines(falls, 40), lines(falls, 40, SIZE[::-1]).T)


def prepared(digit, covered):
    ink = written(digit, SIZE, BOX, pen=6) if digit else np.zeros(SIZE[::-1])
    return prepare_digit(Image.fromarray(on_paper(np.maximum(ink, 0.5 * covered)).astype(np.uint8)))


@pytest.mark.parametrize("falls", [LEVEL, STEEP, TILTED], ids=["level", "steep", "tilted"])
@pytest.mark.parametrize("digit", "2457")
@pytest.mark.parametrize("drawn", [lines, squares])
def test_a_digit_is_the_same_without_the_lines_below_it(falls, digit, drawn):
    plain, ruled = prepared(digit, 0 * ALL), prepared(digit, drawn(falls))
    assert np.abs(np.asarray(plain.picture, float) - np.asarray(ruled.picture, float)).mean() < 15
    assert "erased the lines of the paper" in ruled.words
    assert "lines" not in plain.words


@pytest.mark.parametrize("falls", [LEVEL, STEEP, TILTED], ids=["level", "steep", "tilted"])
@pytest.mark.parametrize("drawn", [lines, squares])
def test_an_empty_sheet_with_lines_is_refused(falls, drawn):
    with pytest.raises(NoDigitError, match="no digit to be seen"):
        prepared("", drawn(falls))


@pytest.mark.parametrize("number", [77000, 77003, 77009])
@pytest.mark.parametrize("line", [45.0, 90.0], ids=["faint", "dark"])
def test_empty_squares_are_refused_also_where_they_or_the_paper_are_shaded(number, line):
    """Grain is measured between them: they are strong themselves, and half as strong between two pixels."""
    page = take_photograph(None, Scene(rows=5.0, columns=5.0, line=line), draw_chance(number))
    with pytest.raises(NoDigitError, match="no digit to be seen"):
        prepare_digit(page)


def test_thin_strokes_that_are_darker_than_lines_are_not_cut_where_they_cross():
    across, down = lines(STEEP, 34, width=3), lines(STEEP, 34, SIZE[::-1], width=3).T
    stroke = written("4", SIZE, BOX, pen=3)
    rest, is_ruled = without_lines(np.maximum(0.3 * np.maximum(across, down), 0.7 * stroke), ALL)
    assert is_ruled
    assert (rest[stroke > 0.8] > 0.5).all()


def test_faint_lines_are_erased_also_where_the_paper_has_a_shade():
    """Digits in pencil are no darker than such lines."""
    shade = 0.1 * np.clip(np.hypot(*(np.indices(SIZE[::-1]) - [[[375]], [[500]]])) / 300 - 1, 0, 1)
    rest, is_ruled = without_lines(shade + 0.15 * squares(STEEP), ALL)
    assert is_ruled
    assert (rest - shade > 0.05).mean() < 0.01


def test_strokes_across_a_line_stay_and_thick_ones_along_it_too():
    ink = 0.5 * lines(LEVEL)
    ink[150:300, 500:506] = ink[197:205, 600:700] = 1.0
    rest, is_ruled = without_lines(ink, ALL)
    assert is_ruled
    assert rest[150:300, 500:506].all()
    assert rest[197:205, 600:700].all()
    assert rest.sum() < 1.15 * (ink == 1).sum()


def test_what_ends_on_the_sheet_or_is_broken_is_no_line():
    ink = np.zeros(SIZE[::-1])
    ink[200:202, 150:] = ink[400:402, :850] = 1.0
    ink[600:602] = np.arange(1000) % 100 < 75
    rest, is_ruled = without_lines(ink, ALL)
    assert not is_ruled
    assert np.array_equal(rest, ink)


def test_a_line_runs_to_the_edge_of_a_sheet_not_of_the_picture():
    sheet = ~ALL
    sheet[100:650, 150:850] = True
    ink = lines(TILTED) * sheet
    assert without_lines(ink, sheet)[0].sum() < 0.06 * ink.sum()
    assert not without_lines(ink, ALL)[1]


def test_a_wide_band_is_no_line():
    ink = lines(LEVEL, 300, width=30)
    assert np.array_equal(without_lines(ink, ALL)[0], ink)
