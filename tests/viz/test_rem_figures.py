import numpy as np
import pytest

from torchcaps.core import UserError
from torchcaps.viz import to_png
from torchcaps.viz.auc import draw_auc
from torchcaps.viz.front import Point, draw_front
from torchcaps.viz.rem import save_levels
from torchcaps.viz.saliency import Panel, draw_saliency


def test_every_image_has_a_map_for_each_network():
    maps = {"without": np.ones((2, 8, 8)), "with": np.zeros((2, 8, 8))}
    grey, colour = np.zeros((2, 1, 8, 8)), np.zeros((2, 3, 8, 8))
    figure = draw_saliency({"grey": Panel(grey, maps), "colour": Panel(colour, maps)})
    assert len(figure.axes) == 2 * 2 * 3
    assert {text.get_text() for text in figure.texts} == {"grey", "colour", "image", "without", "with"}
    assert to_png(figure)[1:4] == b"PNG"


def test_maps_of_another_size_are_refused():
    with pytest.raises(UserError, match=r"with: 2 images of .8, 8. need maps of that size"):
        draw_saliency({"x": Panel(np.zeros((2, 8, 8)), {"with": np.zeros((2, 4, 4))})})
    with pytest.raises(UserError, match="no images"):
        draw_saliency({})


def test_a_front_has_a_point_for_each_way_and_a_cross_for_the_thesis():
    points = [
        Point("", "plain", 9.0, 99.5, 0.1),
        Point("0.1", "entropy", 3.0, 99.4),
        Point("1.0", "entropy", 0.0, 99.0, is_empty=True),
    ]
    (axes,) = draw_front({"net": points}, {"net": (4.16, 99.56)}).axes
    assert [text.get_text() for text in axes.texts] == ["", "0.1", "1.0"]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["thesis, REM", "plain", "entropy"]
    drawn = [line for line in axes.lines if len(line.get_xdata()) and line.get_marker() == "o"]
    assert [line.get_markerfacecolor() == "white" for line in drawn] == [False, False, True]


def test_a_front_without_points_is_refused():
    with pytest.raises(UserError, match="got 0"):
        draw_front({}, {})


def test_areas_are_drawn_in_groups():
    areas = {"children": {"noise": 0.9, "blur": 0.6}, "length": {"noise": 0.7}}
    (axes,) = draw_auc({"net": areas}).axes
    assert sorted(patch.get_height() for patch in axes.patches) == [0.6, 0.7, 0.9]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["noise", "blur"]


def test_too_many_scores_are_refused():
    with pytest.raises(UserError, match="got 6"):
        draw_auc({"net": {str(number): {"noise": 0.5} for number in range(6)}})


def test_the_names_of_the_curves_stand_clear_of_the_charts(tmp_path, monkeypatch):
    drawn = []
    monkeypatch.setattr("torchcaps.viz.rem.to_png", lambda figure: drawn.append(figure) or to_png(figure))
    curve = {"levels": [2, 8, 64], "quantized_accuracy": [0.1, 0.9, 1.0], "entropy": [0, 5.0, 9.9]}
    rows = [{"setting": f"Efficient-CapsNet+{way}", "runs": [{"curve": curve}]} for way in ("Q", "REM")]
    save_levels(rows, tmp_path / "levels.png")
    (figure,) = drawn
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == [row["setting"] for row in rows]
    box = legend.get_window_extent()
    assert 0 < box.y0 < box.y1 < min(axes.get_tightbbox().y0 for axes in figure.axes)
