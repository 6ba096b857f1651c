import pytest
from viz.drawing import assert_draws, legend_of

from torchcaps.core import UserError
from torchcaps.viz import LineChart, Measured, draw_lines


def curve(*points):
    return [(x, Measured(*values)) for x, *values in points]


def lines_of(axes):
    return {line.get_label(): line.get_xydata().tolist() for line in axes.lines if line.get_label()[0] != "_"}


def test_each_chart_has_its_curves_and_the_legend_names_all_of_them_once():
    tuned = curve((1.0, 78.0, 77.5, 78.5, "50 %"), (3.0, 80.0, 79.0, 81.0, "0 %"))
    charts = [
        LineChart("one", {"fine-tuned": tuned, "frozen": tuned[:1]}, across="GFLOPs", unit="%"),
        LineChart("two", {"fine-tuned": tuned, "factorised": []}, starts_at_zero=True),
    ]
    figure = draw_lines(charts)
    assert lines_of(figure.axes[0]) == {"fine-tuned": [[1.0, 78.0], [3.0, 80.0]], "frozen": [[1.0, 78.0]]}
    assert {"0 %", "50 %"} <= {text.get_text() for text in figure.axes[0].texts}
    assert figure.axes[1].get_xlim()[0] == 0
    assert legend_of(figure) == ["fine-tuned", "frozen"]
    colours = {line.get_label(): line.get_color() for line in figure.axes[0].lines}
    assert colours["fine-tuned"] != colours["frozen"]
    assert_draws(figure)


def test_the_legend_stands_clear_of_the_charts():
    shown = curve((2, 0.1), (8, 0.9), (64, 1.0))
    charts = [LineChart(t, {f"Efficient-CapsNet+{w}": shown for w in ("Q", "REM")}, across="x") for t in "ab"]
    figure = draw_lines(charts)
    box = figure.legends[0].get_window_extent()
    assert 0 < box.y0 < box.y1 < min(axes.get_tightbbox().y0 for axes in figure.axes)


def test_few_points_have_an_interval_each_and_many_a_band():
    few = draw_lines([LineChart("", {"a": curve((1, 0.5, 0.4, 0.6), (3, 0.4))})]).axes[0]
    ends = few.containers[0][2][0].get_segments()
    heights = [end[1] for segment in ends for end in segment]
    assert heights == pytest.approx([0.4, 0.6, 0.4, 0.4])
    many = draw_lines([LineChart("", {"a": curve(*((x, 0.5, 0.4, 0.6) for x in range(30)))})]).axes[0]
    heights = many.collections[0].get_paths()[0].vertices[:, 1]
    assert (heights.min(), heights.max()) == pytest.approx((0.4, 0.6))


def test_bands_are_fainter_where_more_than_a_few_lie_over_each_other():
    points = curve(*((x, 0.5, 0.4, 0.6) for x in range(30)))
    few, many = (
        draw_lines([LineChart("", dict.fromkeys(names, points))]).axes[0] for names in ("ab", "abcdef")
    )
    assert few.collections[0].get_alpha() > many.collections[0].get_alpha() > 0


def test_a_logarithmic_axis_names_its_places():
    axes = draw_lines([LineChart("", {"a": curve((1, 1.0), (50, 2.0))}, log_ticks=(1, 5, 50))]).axes[0]
    assert axes.get_xscale() == "log"
    assert [label.get_text() for label in axes.get_xticklabels()] == ["1", "5", "50"]


def test_nothing_to_draw_is_said():
    with pytest.raises(UserError, match="no finished run"):
        draw_lines([LineChart("loss", {"fixed": []})])
    with pytest.raises(UserError, match="room for 6 curves, got 7"):
        draw_lines([LineChart("", {str(n): curve((1, 1.0)) for n in range(7)})])
