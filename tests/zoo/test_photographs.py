"""The packaged network reads digits that were drawn with a pen and photographed badly."""

import re

import numpy as np
import pytest
import torch
from PIL import Image, ImageDraw
from zoo.handwriting import (
    PAGES,
    chalk_on_a_blackboard,
    empty_sheet_on_a_table,
    forty_pixels,
    in_a_box,
    inverted,
    on_paper,
    photograph,
    photograph_of_3000_pixels,
    small_note_on_a_table,
    stains,
    tiny_on_a_whole_page,
    written,
)

from torchcaps.core import UserError
from torchcaps.zoo import create_model, photo_predictor, predict, prepare_digit
from torchcaps.zoo.photo.marks import label_marks

SHOWN = ("4", "1")  # two strokes, and one that could be a ruled line


@pytest.fixture(scope="module")
def reader():
    return photo_predictor("efficient_capsnet_mnist.mnist")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.__name__)
def test_a_digit_is_read_on(page, reader):
    digits = SHOWN[:1] if page is photograph_of_3000_pixels else SHOWN
    assert [reader.answer(photograph(page, digit)).row["class"] for digit in digits] == list(digits)


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.__name__)
def test_every_digit_is_read_on(page, reader):
    digits = list("0123456789")
    rows = [reader.answer(photograph(page, digit)).row for digit in digits]
    assert [row["class"] for row in rows] == digits
    assert not any("hint" in row for row in rows)  # that the page is turned
    assert not any("touches the edge" in row["preparation"] for row in rows)


def test_the_size_that_is_told_is_that_of_the_photograph():
    words = prepare_digit(photograph(photograph_of_3000_pixels, "1")).words
    width, height = re.search(r"cropped to the digit, (\d+)x(\d+) of 3000x2200 px", words).groups()
    assert int(width) == pytest.approx(0.2 * 700 + 50, abs=12)  # where the pen went, and its width
    assert int(height) == pytest.approx(0.9 * 1000 + 50, abs=12)


@pytest.mark.parametrize("digit", "018")
def test_a_digit_of_a_thirtieth_of_the_page_is_found(digit):
    words = prepare_digit(photograph(tiny_on_a_whole_page, digit)).words
    (height,) = re.search(r"cropped to the digit, \d+x(\d+) of 1500x2100 px", words).groups()
    assert int(height) == pytest.approx(0.9 * 70 + 4, abs=6)  # where the pen went, and its width
    assert "left out" not in words


def test_a_sheet_is_cut_out_of_its_table_and_its_size_is_told():
    words = prepare_digit(photograph(small_note_on_a_table, "3")).words
    width, height = map(int, re.search(r"^cut out the sheet, (\d+)x(\d+) px", words).groups())
    assert 170 < width < 0.32 * 640
    assert 170 < height < 0.42 * 480


@pytest.mark.parametrize("page", [inverted, chalk_on_a_blackboard], ids=lambda page: page.__name__)
@pytest.mark.parametrize("digit", "01468")
def test_a_bright_digit_is_no_sheet(page, digit):
    assert "sheet" not in prepare_digit(photograph(page, digit)).words


def test_a_box_around_a_digit_is_left_out_and_one_around_nothing_is_a_digit():
    assert "left out 1 other mark," in prepare_digit(photograph(in_a_box, "3")).words
    empty = Image.new("L", (200, 200), 240)
    ImageDraw.Draw(empty).rectangle([60, 40, 130, 160], outline=20, width=12)
    assert "left out" not in prepare_digit(empty).words


def test_marks_beside_the_digit_are_left_out_and_counted():
    clean = prepare_digit(Image.fromarray(on_paper(written("5")).astype(np.uint8)))
    stained = prepare_digit(photograph(stains, "5"))
    assert "left out 2 other marks" in stained.words
    assert "left out" not in clean.words


@pytest.mark.parametrize("place", [(-60, 60), (260, 60), (100, -90), (100, 250)])
def test_a_digit_that_runs_off_the_picture_is_said_to(place):
    cut = on_paper(written("3", box=(*place, 200, 280)))
    assert "touches the edge" in prepare_digit(Image.fromarray(cut.astype(np.uint8))).words


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.__name__)
def test_a_whole_and_upright_digit_is_not_doubted(page):
    words = prepare_digit(photograph(page, "3")).words
    assert "touches the edge" not in words
    assert "wider than high" not in words


def test_two_digits_side_by_side_are_said_to_be_wide():
    both = written("4", box=(60, 120, 120, 180)) + written("2", box=(200, 120, 120, 180))
    page = Image.fromarray(on_paper(np.minimum(both, 1)).astype(np.uint8))
    assert "wider than high (several digits, or a turned page?)" in prepare_digit(page).words


def test_a_second_digit_that_is_left_out_is_doubted_and_stains_are_not():
    both = written("4", box=(40, 120, 100, 150)) + written("1", box=(260, 120, 100, 150))
    page = Image.fromarray(on_paper(np.minimum(both, 1)).astype(np.uint8))
    assert prepare_digit(page).words.startswith("1 other mark of about its size (several digits?), inverted")
    assert "of about its size" not in prepare_digit(photograph(stains, "1")).words


def test_a_stain_on_a_large_page_is_refused():
    page = np.full((900, 1200), 230, dtype=np.uint8)
    page[400:412, 700:712] = 20
    with pytest.raises(UserError, match="no digit to be seen: stains alone; take it nearer"):
        prepare_digit(Image.fromarray(page))
    assert "px large" not in prepare_digit(photograph(forty_pixels, "1")).words


@pytest.mark.parametrize("table", [20, 90, 180])
def test_an_empty_sheet_on_a_table_is_refused(table):
    with pytest.raises(UserError, match="no digit to be seen"):
        prepare_digit(photograph(empty_sheet_on_a_table, table))


@pytest.mark.parametrize("grain", [5.0, 12.0, 25.0])
def test_the_grain_of_an_empty_page_is_no_digit(grain):
    page = np.random.default_rng(0).normal(170, grain, (900, 1200)).clip(0, 255)
    with pytest.raises(UserError, match="no digit to be seen"):
        prepare_digit(Image.fromarray(page.astype(np.uint8)))


@pytest.mark.parametrize("size", [(1, 1), (3, 90), (90, 2), (9, 9)])
def test_a_blank_strip_of_any_size_is_refused_in_words(size):
    with pytest.raises(UserError, match="no digit to be seen"):
        prepare_digit(Image.new("L", size, 200))


def test_marks_that_touch_have_one_number():
    page = np.array([[1, 0, 1, 0, 1], [1, 0, 1, 0, 0], [0, 1, 0, 0, 1], [0, 0, 0, 1, 0]], dtype=bool)
    labels = label_marks(page)
    assert len(np.unique(labels)) == 4  # paper, the u that meets at the bottom, a dot, a diagonal
    assert labels[0, 0] == labels[0, 2] == labels[2, 1]
    assert labels[2, 4] == labels[3, 3] != labels[0, 4]
    assert np.array_equal(labels > 0, page)


@pytest.mark.compile  # the run-time type checks would answer first
def test_a_network_and_tensors_are_told_who_answers_for_them():
    for source in (create_model("dr_capsnet_tiny_test"), "efficient_capsnet_mnist.mnist"):
        with pytest.raises(UserError, match=r"takes a run and image files, got a .*: model\(images\)"):
            predict(source, torch.rand(1, 28, 28))
    for pictures in (Image.new("L", (28, 28)), [Image.new("L", (28, 28))], np.zeros((28, 28)), 5):
        with pytest.raises(UserError, match=r"got a (Image|ndarray|int); .*answer\(picture\) answers"):
            predict("efficient_capsnet_mnist.mnist", pictures)


def test_files_may_come_from_a_generator(tmp_path):
    for name in ("one.png", "two.png"):
        ImageDraw.Draw(page := Image.new("L", (60, 60), 255)).line([(30, 10), (30, 50)], fill=0, width=5)
        page.save(tmp_path / name)
    assert len(predict("dr_capsnet_minimal.mnist", tmp_path.glob("*.png"))) == 2
