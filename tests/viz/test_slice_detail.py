"""A nodule on its slice: where it is, and close up."""

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from torchcaps.viz import SliceDetail, draw_slice_detail


def detail(heat=None, aspect=1.0):
    grey, mask = np.full((100, 140), 60, np.uint8), np.zeros((100, 140), bool)
    mask[28:33, 88:93] = True
    return SliceDetail(
        grey=grey,
        mask=mask,
        heat=heat,
        centre=(30.0, 90.0),
        aspect=aspect,
        title="nodule 1",
        caption="below",
        heat_title="capsules",
    )


def test_a_close_up_shows_the_rows_and_columns_around_its_middle_upright():
    whole, plain, outlined = draw_slice_detail(detail()).axes
    assert whole.get_xlim() == (-0.5, 139.5)
    assert whole.get_ylim() == (99.5, -0.5)
    for close in (plain, outlined):
        assert close.get_xlim() == (58, 122)
        assert close.get_ylim() == (62, -2)
    (frame,) = whole.patches
    assert frame.get_bbox().extents.tolist() == [58, -2, 122, 62]


def test_the_outline_runs_around_the_mask_on_the_slice_and_on_the_last_close_up():
    whole, plain, outlined = draw_slice_detail(detail()).axes
    assert not plain.collections
    for axes in (whole, outlined):
        ((path,),) = (collection.get_paths() for collection in axes.collections)
        low, high = path.get_extents().min, path.get_extents().max
        assert (*low, *high) == pytest.approx((87.5, 27.5, 92.5, 32.5))


def test_pixels_twice_as_high_as_wide_are_drawn_so():
    figure = draw_slice_detail(detail(aspect=2.0))
    FigureCanvasAgg(figure).draw()
    axes = figure.axes[0]
    (left, top), (right, bottom) = (axes.transData.transform(place) for place in ((0, 0), (10, 10)))
    assert (top - bottom) / (right - left) == pytest.approx(2)


def test_evidence_is_seen_where_it_is_strong_in_a_panel_of_its_own():
    heat = np.zeros((100, 140))
    heat[30, 90], heat[31, 90], heat[32, 90] = 4.0, 2.0, 0.1
    *_, close = draw_slice_detail(detail(heat)).axes
    alpha = np.asarray(close.images[1].get_array())[..., 3]
    assert alpha[30:33, 90].tolist() == pytest.approx([0.75, 0.5, 0.0])
    assert (alpha > 0).sum() == 2
    assert (close.get_xlim(), close.get_title()) == ((58, 122), "capsules")
