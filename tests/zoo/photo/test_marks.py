"""Marks on a page by hand: which of them are the digit."""

import numpy as np

from torchcaps.zoo.photo.marks import find_digit, label_marks, measured, widened


def page(*marks):
    """Rectangles (top, bottom, left, right) of ink, both ends included."""
    is_ink = np.zeros((60, 60), bool)
    for top, bottom, left, right in marks:
        is_ink[top : bottom + 1, left : right + 1] = True
    return label_marks(is_ink)


def find(labels):
    """The digit among marks of full ink."""
    return find_digit(labels, (labels > 0).astype(float))


def chosen(*marks):
    """The first pixels of the marks that are the digit, and how many others there are."""
    found = find(page(*marks))
    return [bool(found.pixels[mark[0], mark[2]]) for mark in marks], found.others


def flooded(is_ink):
    """The marks by the textbook: from each pixel to its eight neighbours."""
    labels = np.zeros(is_ink.shape, int)
    for start in np.argwhere(is_ink):
        if labels[tuple(start)]:
            continue
        waiting, number = [tuple(start)], labels.max() + 1
        while waiting:
            row, column = waiting.pop()
            is_inside = 0 <= row < len(is_ink) and 0 <= column < is_ink.shape[1]
            if is_inside and is_ink[row, column] and not labels[row, column]:
                labels[row, column] = number
                waiting += [(row + down, column + right) for down in (-1, 0, 1) for right in (-1, 0, 1)]
    return labels


def test_pixels_touch_at_corners_too():
    for seed in range(20):
        is_ink = np.random.default_rng(seed).random((9, 11)) < 0.35
        ours, expected = label_marks(is_ink), flooded(is_ink)
        pairs = set(zip(ours.ravel().tolist(), expected.ravel().tolist(), strict=True))
        assert len(pairs) == len(np.unique(ours)) == len(np.unique(expected))  # the same marks, by any number


def test_a_pixel_is_widened_to_its_eight_neighbours():
    pixels = np.zeros((5, 6), bool)
    pixels[1, 2] = pixels[4, 5] = True
    expected = np.zeros((5, 6), bool)
    expected[0:3, 1:4] = expected[3:, 4:] = True
    assert np.array_equal(widened(pixels), expected)


def test_marks_are_measured_as_one_by_one():
    for seed in range(20):
        labels = label_marks(np.random.default_rng(seed).random((9, 11)) < 0.25)
        for mark in measured(labels):
            rows, columns = np.nonzero(labels == mark.label)
            box = (rows.min(), rows.max(), columns.min(), columns.max())
            assert (mark.top, mark.bottom, mark.left, mark.right) == box
            assert mark.pixels == len(rows)
            assert mark.is_at_edge == (box[0] == 0 or box[1] == 8 or box[2] == 0 or box[3] == 10)
        assert [mark.label for mark in measured(labels)] == np.unique(labels[labels > 0]).tolist()
    assert measured(np.zeros((4, 5), np.int64)) == []


MAIN = (20, 39, 20, 29)  # 200 pixels, 19 high: a stroke within 6 of it belongs to it


def test_strokes_near_the_main_one_belong_to_the_digit_on_every_side():
    for near in ((10, 15, 20, 29), (44, 49, 20, 29), (25, 34, 11, 16), (25, 34, 33, 38)):
        assert chosen(MAIN, near) == ([True, True], 0)


def test_strokes_far_from_the_main_one_are_others_on_every_side():
    for far in ((5, 10, 20, 29), (48, 53, 20, 29), (25, 34, 5, 10), (25, 34, 40, 45)):
        assert chosen(MAIN, far) == ([True, False], 1)


def test_a_line_under_a_digit_that_is_longer_than_the_digit_is_high_is_no_stroke_of_it():
    assert chosen(MAIN, (42, 45, 12, 31)) == ([True, True], 0)
    assert chosen(MAIN, (42, 45, 12, 32)) == ([True, False], 1)
    assert chosen(MAIN, (14, 17, 12, 32)) == ([True, True], 0)  # above it, the bar of a five


def test_specks_near_the_main_stroke_are_others():
    assert chosen(MAIN, (15, 17, 22, 26)) == ([True, False], 1)  # 15 pixels, less than 8 % of 200
    assert chosen(MAIN, (14, 17, 22, 26)) == ([True, True], 0)  # 20 pixels


def test_a_speck_on_the_page_is_no_digit_beside_a_large_mark_at_the_edge():
    edge = (0, 39, 0, 29)  # 1,200 pixels
    assert chosen(edge, (50, 54, 50, 56)) == ([True, False], 1)  # 35 pixels, less than 3 % of it
    assert chosen(edge, (50, 55, 50, 56)) == ([False, True], 1)  # 42 pixels


def test_marks_a_third_as_long_as_the_digit_are_rivals_unless_they_run_off_the_page_or_are_lines():
    long, flat = (5, 44, 5, 9), (54, 56, 20, 45)
    assert find(page(long, (20, 33, 50, 52))).rivals == 1  # 13 of 39 high
    assert find(page(long, (20, 32, 50, 52))).rivals == 0
    assert find(page(long, flat)).rivals == 0
    assert find(page(MAIN, (20, 39, 58, 59))).rivals == 0
    assert find(page(MAIN, (20, 39, 32, 33))).rivals == 0  # a stroke of the digit


def test_the_darkest_strokes_are_the_digit_not_the_largest():
    labels = page((5, 54, 5, 8), (20, 39, 30, 33))  # two ones
    pale = np.where(labels == labels[5, 5], 0.5, 1.0) * (labels > 0)
    assert find(labels).pixels[5, 5]
    assert find_digit(labels, pale).pixels[20, 30]


def test_a_blot_is_no_digit_beside_a_thin_stroke():
    found = find(page((5, 24, 5, 24), (30, 54, 50, 51)))
    assert found.pixels[30, 50]
    assert not found.pixels[5, 5]
    assert not found.is_stain
    assert find(page((5, 24, 5, 24))).is_stain


def test_a_line_and_a_speck_are_no_digits():
    assert find(page((20, 24, 5, 50))).is_stain
    assert not find(page((5, 50, 20, 24))).is_stain
    assert find(page((20, 22, 30, 31))).is_stain


def ellipse(across, down, width=5, share=1.0):
    rows, columns = np.indices((120, 120)) - 59.5
    away = np.hypot(rows / down, columns / across) - 1
    part = np.arctan2(rows, columns) < np.pi * (2 * share - 1)
    return label_marks((np.abs(away) * (across + down) / 2 < width / 2) & part)


def test_the_ring_of_a_cup_is_no_digit_and_a_zero_is():
    assert find(ellipse(50, 50)).is_stain
    assert find(ellipse(50, 50, share=0.6)).is_stain
    assert not find(ellipse(38, 50)).is_stain
    assert not find(ellipse(44, 50, width=14)).is_stain
    assert not find(ellipse(50, 50, share=0.2)).is_stain
