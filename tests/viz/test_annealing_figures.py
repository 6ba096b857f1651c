import pytest
from PIL import Image

from torchcaps.core import UserError
from torchcaps.viz import to_png
from torchcaps.viz.annealing import Bar, Point, draw_accuracy_bars, draw_coupling_fans, draw_iterations


def test_lines_have_bands_where_there_are_several_seeds():
    panels = {"loss": {"fixed": [Point(1, 0.5, 0.1), Point(3, 0.4)], "annealed": []}}
    axes = draw_iterations(panels).axes[0]
    assert [tuple(line.get_ydata()) for line in axes.lines] == [(0.5, 0.4), ()]
    heights = axes.collections[0].get_paths()[0].vertices[:, 1]
    assert heights.min() == pytest.approx(0.4)
    assert heights.max() == pytest.approx(0.6)
    with pytest.raises(UserError, match="no finished run"):
        draw_iterations({"loss": {"fixed": []}})


def test_bars_carry_their_words_and_missing_ones_leave_a_gap():
    bar = Bar(90.0, 0.5, "7")
    figure = draw_accuracy_bars({"2D": {"1 type": {"fixed": bar, "annealed": bar}, "2 types": {}}})
    chart = figure.axes[0]
    assert [patch.get_height() for patch in chart.patches] == [90.0, 90.0]
    assert [text.get_text() for text in chart.texts].count("7") == 2
    with pytest.raises(UserError, match="no finished run"):
        draw_accuracy_bars({"2D": {"1 type": {}}})


def test_the_width_of_a_line_is_the_coupling(tmp_path):
    figure = draw_coupling_fans({1: [0.5, 0.5], 50: [0.9, 0.1]}, ["a", "b"], panels=(1, 50))
    widths = [line.get_linewidth() for line in figure.axes[0].lines if len(line.get_xdata()) == 2]
    assert [width / widths[0] for width in widths] == pytest.approx([1, 1, 1.8, 0.2])
    (tmp_path / "fan.png").write_bytes(to_png(figure))
    with Image.open(tmp_path / "fan.png") as picture:
        assert picture.width > picture.height
    with pytest.raises(UserError, match="no couplings"):
        draw_coupling_fans({1: [0.5, 0.5]}, ["a", "b"], panels=(3,))
