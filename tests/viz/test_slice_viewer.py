"""Which slices a page holds, and at which size."""

import numpy as np

from torchcaps.viz.slice_viewer import LONGEST_SIDE, MOST_SLICES, SliceView, choose_slices, slice_viewer

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


def test_more_marked_slices_than_room_are_spread_evenly():
    assert choose_slices(np.ones(9, bool), [], most=3) == [0, 4, 8]


def test_a_large_volume_gives_a_bounded_page():
    grey = np.random.default_rng(0).integers(0, 255, (MOST_SLICES + 40, 16, 1024), dtype=np.uint8)
    page = slice_viewer(grey, np.zeros_like(grey), VIEW)
    assert page.count("data:image/jpeg") == MOST_SLICES
    assert f"{LONGEST_SIDE}x6 pixels" in page
    assert f"{MOST_SLICES} of {MOST_SLICES + 40} slices" in page


def test_thick_pixels_are_shown_in_the_proportions_of_the_body():
    grey = np.zeros((1, 20, 40), np.uint8)
    page = slice_viewer(grey, grey, SliceView(title="", text="", notice="", columns=(), aspect=2.0))
    assert "--width: 40; --height: 40" in page


def test_on_paper_the_list_is_whole():
    """On a screen it scrolls, and a printer would cut it there."""
    grey = np.zeros((1, 4, 4), np.uint8)
    page = slice_viewer(grey, grey, VIEW)
    assert "max-height: none" in page.partition("@media print")[2].partition("\n")[0]


def test_without_scripts_the_page_says_that_slices_need_them():
    grey = np.zeros((1, 4, 4), np.uint8)
    assert "<noscript><p>Slices are shown with JavaScript" in slice_viewer(grey, grey, VIEW)
