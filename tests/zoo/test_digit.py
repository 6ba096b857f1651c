import numpy as np
import pytest
from PIL import Image, ImageDraw

from torchcaps.core import UserError
from torchcaps.zoo import prepare_digit


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


def test_an_empty_page_is_refused():
    with pytest.raises(UserError, match="no digit to be seen"):
        prepare_digit(Image.new("L", (100, 100), 240))


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


def test_pixels_that_are_no_finite_numbers_do_not_hide_a_digit():
    pixels = np.zeros((60, 60), np.float32)
    pixels[15:45, 27:33] = 3.5
    pixels[0, :3] = np.nan, np.inf, -np.inf
    seen = prepare_digit(Image.fromarray(pixels))
    pixels[0, :3] = 0, 3.5, 0
    assert seen.picture.tobytes() == prepare_digit(Image.fromarray(pixels)).picture.tobytes()
