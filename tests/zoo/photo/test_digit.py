from functools import partial

import numpy as np
import pytest
from PIL import Image, ImageDraw
from zoo.handwriting import photograph, sheet_with_a_cut_digit, written

from torchcaps.core import UserError
from torchcaps.zoo import prepare_digit
from torchcaps.zoo.photo.digit import _alone, _Box, _doubts, _is_at_edge, _strokes
from torchcaps.zoo.photo.grey import as_grey
from torchcaps.zoo.photo.ink import _contrast
from torchcaps.zoo.photo.paper import fills
from torchcaps.zoo.photo.size import fitting


def drawn(size=(300, 400), ink=0, paper=255, at=(60, 90), scale=4, noise=0.0):
    """A seven drawn on a page, with a shadow over the page where there is noise."""
    picture = Image.new("L", size, paper)
    pen = ImageDraw.Draw(picture)
    points = [(at[0] + scale * x, at[1] + scale * y) for x, y in ((0, 0), (25, 0), (10, 40))]
    pen.line(points, fill=ink, width=4 * scale, joint="curve")
    levels = np.asarray(picture, dtype=float)
    shadow = noise * np.linspace(-1, 1, size[0])[None, :]
    grain = min(noise, 12) * np.random.default_rng(0).normal(0, 0.3, levels.shape)
    return Image.fromarray(np.clip(levels + shadow + grain, 0, 255).astype(np.uint8))


def levels(prepared):
    return np.asarray(prepared.picture, dtype=float)


def assert_alike(one, other):
    """But for a pixel more or less at the edge."""
    shifts = [(row, column) for row in (-1, 0, 1) for column in (-1, 0, 1)]
    assert min(np.abs(levels(one) - np.roll(levels(other), shift, (0, 1))).mean() for shift in shifts) < 12


def test_the_result_is_as_mnist_has_it():
    found = levels(prepare_digit(drawn()))
    assert found.shape == (28, 28)
    assert found.max() == 255
    rows, columns = np.nonzero(found > 60)
    assert max(np.ptp(rows), np.ptp(columns)) + 1 == 20
    mass = [(np.indices((28, 28))[axis] * found).sum() / found.sum() for axis in (0, 1)]
    assert mass == pytest.approx([13.5, 13.5], abs=0.75)


@pytest.mark.parametrize(
    "changes",
    [
        {"size": (900, 1200), "at": (500, 700), "scale": 8},
        {"at": (150, 200)},
        {"ink": 60, "paper": 190},
        {"noise": 12.0},
        {"noise": 40.0, "ink": 20, "paper": 200},
    ],
    ids=["larger", "elsewhere", "pale", "grain", "shadow"],
)
def test_size_place_contrast_and_shadow_change_little(changes):
    assert_alike(prepare_digit(drawn()), prepare_digit(drawn(**changes)))


def test_bright_on_dark_gives_the_same_and_each_says_what_it_was():
    dark, bright = prepare_digit(drawn()), prepare_digit(drawn(ink=255, paper=0))
    assert np.abs(levels(dark) - levels(bright)).mean() < 1
    assert dark.words.startswith("inverted (dark on bright)")
    assert bright.words.startswith("not inverted (bright on dark)")


def test_a_digit_of_mnist_is_taken_as_it_is():
    picture = prepare_digit(drawn()).picture
    again = prepare_digit(picture)
    assert np.array_equal(levels(again), np.asarray(picture, dtype=float))
    assert again.words == "taken as it is: 28x28 px on black"


def test_colours_and_transparency_are_no_obstacle():
    assert np.abs(levels(prepare_digit(drawn().convert("RGB"))) - levels(prepare_digit(drawn()))).mean() < 1


def test_ink_that_is_as_bright_as_the_paper_is_seen_by_its_colour():
    page = np.asarray(drawn(), dtype=np.uint8) > 127
    coloured = np.where(page[..., None], (90, 130, 215), (205, 95, 80)).astype(np.uint8)
    greys = np.asarray(Image.fromarray(coloured).convert("L"))
    assert np.ptp(greys) < 12
    found = prepare_digit(Image.fromarray(coloured))
    assert found.words.startswith("read in blue alone, inverted")
    assert np.abs(levels(found) - levels(prepare_digit(drawn()))).mean() < 3


def test_an_empty_page_is_refused():
    with pytest.raises(UserError, match="no digit to be seen"):
        prepare_digit(Image.new("L", (100, 100), 240))
    with pytest.raises(UserError, match="no digit to be seen"):
        prepare_digit(drawn(ink=225, paper=235))  # 10 levels of 255 may be the grain of the paper
    assert prepare_digit(drawn(ink=205, paper=235))


def on_clear(stroke):
    """A seven of one tone on a clear ground, as drawing programs export it."""
    ink = np.asarray(drawn(), dtype=np.uint8)
    tone = np.full_like(ink, stroke)
    return Image.fromarray(np.dstack([tone, tone, tone, 255 - ink]))


def test_strokes_on_a_clear_ground_are_read_whatever_their_tone():
    dark, bright = prepare_digit(on_clear(0)), prepare_digit(on_clear(255))
    assert np.abs(levels(dark) - levels(bright)).mean() < 1
    assert dark.words.startswith("clear parts filled with white, inverted")
    assert bright.words.startswith("clear parts filled with black, not inverted")


@pytest.mark.parametrize("mode", ["I;16", "I", "F"])
def test_a_scan_of_many_bits_is_stretched(mode):
    deep = np.asarray(drawn(ink=60, paper=190, noise=12.0), dtype=np.float64) * 40 + 9_000
    kind = {"I;16": np.uint16, "I": np.int32, "F": np.float32}[mode]
    picture = Image.fromarray(deep.astype(kind))
    assert picture.mode == mode
    found = prepare_digit(picture)
    assert found.words.startswith("more than 8 bits stretched to 8, inverted")
    assert_alike(found, prepare_digit(drawn(ink=60, paper=190, noise=12.0)))


def test_a_blot_in_a_stroke_is_full_ink():
    page = np.asarray(drawn(ink=90), dtype=np.uint8).copy()
    stroke = prepare_digit(Image.fromarray(page))
    page[88:92, 100:104] = 0  # less than a thousandth of the page, and darker than what counts as full ink
    blotted = prepare_digit(Image.fromarray(page))
    assert np.abs(levels(blotted) - levels(stroke)).max() < 10


def test_ink_is_as_strong_in_a_shadow_as_beside_it():
    paper = np.array([[240.0, 120.0, 30.0]])
    assert _contrast(paper / 2, paper)[0, :2] == pytest.approx(0.5)
    assert _contrast(paper / 2, paper)[0, 2] == pytest.approx(15 / 60)  # that dark it is no paper
    board = np.array([[80.0, 50.0, 20.0]])
    assert _contrast(board, board)[0] == pytest.approx([1, 1, 0.5])  # chalk; darker than 40 levels is black


@pytest.mark.parametrize(
    ("shape", "longest", "expected"),
    [
        ((100, 400), 200, (200, 50)),
        ((400, 100), 200, (50, 200)),
        ((30, 20), 200, (20, 30)),
        ((1, 900), 9, (9, 1)),
    ],
)
def test_the_longest_side_is_what_fits(shape, longest, expected):
    assert fitting(shape, longest) == expected


def picture_of_paper_and_ink(share):
    levels = np.full((40, 50), 220, np.uint8)
    levels[2:38, 2 : 2 + round(share * 2000 / 36)] = 60
    return levels


@pytest.mark.parametrize(("share", "is_filled"), [(0.1, False), (0.25, True), (0.4, True), (0.6, False)])
def test_a_digit_fills_a_picture_whose_frame_is_paper_alone(share, is_filled):
    assert fills(picture_of_paper_and_ink(share)) is is_filled
    assert fills(255 - picture_of_paper_and_ink(share)) is is_filled


def test_the_dark_side_of_a_shadow_is_no_digit_that_fills_the_picture():
    levels = np.full((40, 50), 220, np.uint8)
    levels[:, :18] = 120
    assert not fills(levels)


def doubts(box, larger=1.0, **found):
    return _doubts(_Box(*box), larger, **{"is_at_edge": False, "rivals": 0, "others": 0} | found)


def test_a_box_is_doubted_at_an_edge_and_where_it_is_wide():
    assert doubts((5, 35, 40, 70)) == []
    assert doubts((10, 30, 40, 64)) == []  # 1.2 times as wide as high
    (wide,) = doubts((10, 30, 40, 66))
    assert wide.startswith("it is wider than high")
    (doubt,) = doubts((5, 35, 40, 60), is_at_edge=True)
    assert doubt.startswith("the digit touches the edge")


def test_a_box_is_doubted_where_it_is_small_in_the_photograph_or_has_rivals():
    assert doubts((0, 8, 0, 5), 2.0) == []
    (small,) = doubts((0, 15, 0, 9))
    assert small == "it is only 15 px large (a stain?)"
    (several,) = doubts((0, 40, 0, 30), rivals=2)
    assert several == "2 other marks of about its size (several digits?)"


@pytest.mark.parametrize(("specks", "is_doubted"), [(100, False), (900, True)])
def test_a_mark_among_hundreds_is_doubted(specks, is_doubted):
    """The grain of an empty page that is small and noisy is now and then taken for a digit."""
    page, random = np.asarray(drawn(size=(480, 640))).copy(), np.random.default_rng(0)
    places = random.integers(0, (480 // 6, 640 // 6), (specks, 2)) * 6
    for row, column in places:
        page[row : row + 2, column : column + 2] = 0
    words = prepare_digit(Image.fromarray(page)).words
    assert ("the grain of the paper?" in words) == is_doubted


def test_ink_at_any_edge_of_the_picture_or_of_a_sheet_is_noticed():
    known = np.ones((4, 9), bool)
    for place in ((0, 4), (3, 4), (1, 0), (2, 8)):
        ink = np.zeros((4, 9), bool)
        ink[place] = True
        assert _is_at_edge(ink, known)
    ink = np.zeros((4, 9), bool)
    ink[1:3, 3:5] = True
    assert not _is_at_edge(ink, known)
    known[2, 5] = False
    assert _is_at_edge(ink, known)


@pytest.mark.parametrize("visible", [0.4, 0.6, 0.8])
@pytest.mark.parametrize("digit", "0239")
def test_a_digit_on_a_sheet_that_runs_off_the_picture_with_it_is_doubted(digit, visible):
    words = prepare_digit(photograph(partial(sheet_with_a_cut_digit, visible=visible), digit)).words
    assert words.startswith("cut out the sheet, ")
    assert "the digit touches the edge (a part of it may be missing)" in words


def test_pixels_that_are_no_finite_numbers_do_not_hide_a_digit():
    pixels = np.zeros((60, 60), np.float32)
    pixels[15:45, 27:33] = 3.5
    pixels[0, :3] = np.nan, np.inf, -np.inf
    seen = prepare_digit(Image.fromarray(pixels))
    pixels[0, :3] = 0, 3.5, 0
    assert seen.picture.tobytes() == prepare_digit(Image.fromarray(pixels)).picture.tobytes()


@pytest.mark.parametrize("share", [0.1, 0.3])
def test_paper_without_ink_is_refused_whatever_its_colour(share):
    paper = np.full((200, 300, 3), (250.0, 235.0, 200.0))
    paper *= 1 - share * np.linspace(0, 1, 300)[:, None] * np.array([0.2, 0.5, 1.0])  # light of two colours
    paper += np.random.default_rng(0).normal(0, 2, paper.shape)
    with pytest.raises(UserError, match="no digit to be seen"):
        prepare_digit(Image.fromarray(paper.clip(0, 255).astype(np.uint8)))


def test_faint_ink_and_ink_of_other_marks_is_left_out():
    ink = np.array([[0.14, 0.16, 0.9, 0.9]])
    assert _alone(ink, np.array([[True, True, True, False]])).tolist() == [[0.0, 0.16, 0.9, 0.0]]


@pytest.mark.parametrize(("tone", "ground"), [(0, "white"), (215, "white"), (240, "black"), (255, "black")])
def test_clear_parts_are_black_only_where_white_would_hide_the_ink(tone, ground):
    picture = Image.new("RGBA", (20, 20), (0, 0, 0, 0))
    picture.paste((tone, tone, tone, 255), (5, 5, 9, 15))
    grey, steps = as_grey(picture)
    assert steps == [f"clear parts filled with {ground}"]
    assert [grey.getpixel(place) for place in ((0, 0), (6, 6))] == [255 if ground == "white" else 0, tone]


@pytest.mark.parametrize("digit", "2358")
def test_pieces_of_strokes_between_erased_lines_are_one_digit_and_the_next_digit_is_another(digit):
    rows, columns = np.indices((192, 256))
    page = written(digit, (256, 192), (60, 50, 60, 80), pen=4) > 0.5
    beside = written("1", (256, 192), (120, 50, 60, 80), pen=4) > 0.5
    between = (rows % 17 > 2) & (columns % 17 > 2)
    found = _strokes((page | beside) & between, np.ones(page.shape), bridged=2)
    assert found.pixels[page & between].all()
    assert not found.pixels[beside].any()
    assert found.rivals == 1
    apart = _strokes((page | beside) & between, np.ones(page.shape), bridged=0)
    assert not apart.pixels[page & between].all()
