"""Which slices a page holds, at which size, and what is marked on them."""

import json
from base64 import b64decode
from io import BytesIO

import numpy as np
import pytest
from PIL import Image

from torchcaps.viz.slice_viewer import (
    LONGEST_SIDE,
    MOST_SLICES,
    Finding,
    SliceView,
    choose_slices,
    slice_viewer,
)

VIEW = SliceView(title="t", text="", notice="n", columns=())


def test_a_page_holds_marked_slices_first_and_then_others_evenly():
    is_marked = np.zeros(500, bool)
    is_marked[200:260] = True
    chosen = choose_slices(is_marked, [7], most=100)
    assert len(chosen) == 100
    assert {7, *range(200, 260)} <= set(chosen)
    assert min(chosen) < 20
    assert max(chosen) > 480


def test_a_short_volume_is_held_whole():
    assert choose_slices(np.zeros(5, bool), []) == [0, 1, 2, 3, 4]


def test_a_page_of_one_slice_speaks_of_one():
    grey = np.zeros((1, 4, 4), np.uint8)
    assert "The only slice is in this page" in slice_viewer(grey, grey, VIEW)


def test_more_marked_slices_than_room_are_spread_evenly():
    assert choose_slices(np.ones(9, bool), [], most=3) == [0, 4, 8]


def test_a_large_volume_gives_a_bounded_page():
    grey = np.random.default_rng(0).integers(0, 255, (MOST_SLICES + 40, 16, 1024), dtype=np.uint8)
    page = slice_viewer(grey, np.zeros_like(grey), VIEW)
    assert page.count("data:image/jpeg") == MOST_SLICES
    assert f"{LONGEST_SIDE}x6 pixels" in page
    assert f"{MOST_SLICES} of {MOST_SLICES + 40} slices" in page


@pytest.mark.parametrize(("aspect", "size"), [(2.0, (40, 40)), (0.5, (80, 20))])
def test_thick_pixels_are_shown_in_the_proportions_of_the_body(aspect, size):
    grey = np.zeros((1, 20, 40), np.uint8)
    page = slice_viewer(grey, grey, SliceView(title="", text="", notice="", columns=(), aspect=aspect))
    assert "--width: {}; --height: {}".format(*size) in page


def test_findings_and_masks_lie_where_they_were_found():
    grey, labels = np.zeros((2, 20, 40), np.uint8), np.zeros((2, 20, 40), np.uint8)
    labels[1, 4:9, 30:36] = 7
    finding = Finding(slice=1, row=6.0, column=32.5, cells=("7",))
    view = SliceView(
        title="", text="", notice="", columns=("n",), findings=[finding], captions={0: "low", 1: "high"}
    )
    page = slice_viewer(grey, labels, view)
    data = json.loads(
        page.partition('<script id="data" type="application/json">')[2].partition("</script>")[0]
    )
    assert data["marks"] == [{"slice": 1, "x": pytest.approx(33 / 40), "y": pytest.approx(6.5 / 20)}]
    empty, marked = data["slices"]
    assert (empty["caption"], marked["caption"]) == ("low", "high")
    assert "mask" not in empty
    with Image.open(BytesIO(b64decode(marked["mask"].partition(",")[2]))) as picture:
        alpha = np.asarray(picture)[..., 3]
    assert np.array_equal(alpha > 0, labels[1] > 0)
    assert (alpha[5:8, 31:35] == 90).all()  # a tint inside of a solid outline
    assert (alpha == 255).sum() == 30 - 12


def test_a_smaller_mask_covers_what_it_covers_by_half_or_more():
    labels = np.zeros((1, 8, 2 * LONGEST_SIDE), np.uint8)
    labels[0, :, 100:201] = 1
    view = SliceView(title="", text="", notice="", columns=())
    page = slice_viewer(np.zeros_like(labels), labels, view)
    uri = page.partition("data:image/png;base64,")[2].partition('"')[0]
    with Image.open(BytesIO(b64decode(uri))) as picture:
        covered = np.flatnonzero(np.asarray(picture)[2, :, 3])
    assert covered[0] == pytest.approx(50, abs=0.5)
    assert covered[-1] == pytest.approx(100, abs=0.5)


def test_on_paper_the_list_is_whole():
    """On a screen it scrolls, and a printer would cut it there."""
    grey = np.zeros((1, 4, 4), np.uint8)
    page = slice_viewer(grey, grey, VIEW)
    assert "max-height: none" in page.partition("@media print")[2].partition("\n")[0]


def test_without_scripts_the_page_says_that_slices_need_them():
    grey = np.zeros((1, 4, 4), np.uint8)
    assert "<noscript><p>Slices are shown with JavaScript" in slice_viewer(grey, grey, VIEW)
