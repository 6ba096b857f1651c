from itertools import combinations

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from viz.drawing import assert_draws, legend_of

from torchcaps.core import UserError
from torchcaps.viz import Measured, draw_bars, draw_dots, measure_seeds, with_deviation

AREAS = {"children": {"noise": Measured(0.9), "blur": Measured(0.6)}, "length": {"noise": Measured(0.7)}}


def test_bars_are_drawn_in_groups_and_start_at_zero():
    figure = draw_bars({"net": AREAS}, unit="AUC", most=1, chance=0.5)
    (axes,) = figure.axes
    assert sorted(patch.get_height() for patch in axes.patches) == [0.6, 0.7, 0.9]
    assert {patch.get_y() for patch in axes.patches} == {0}
    assert axes.get_ylim() == (0, 1)
    assert [label.get_text() for label in axes.get_xticklabels()] == ["noise", "blur"]
    assert legend_of(figure) == ["children", "length", "chance"]
    assert_draws(figure)


def test_an_interval_of_seeds_never_leaves_what_was_measured():
    seeds = {"REM": {"7": measure_seeds([16.0, 200.0])}, "Q": {"7": measure_seeds([569.0])}}
    (axes,) = draw_bars({"trees": seeds}).axes
    (segment,) = axes.containers[1][2][0].get_segments()
    assert segment[:, 1].tolist() == [16, 200]
    assert axes.get_ylim()[0] == 0


def test_dots_carry_their_words_and_missing_ones_leave_a_gap():
    dot = Measured(90.0, 89.5, 90.5, "7")
    charts = {
        "2D": {"fixed": {"1 type": dot}, "annealed": {"1 type": dot, "2 types": dot._replace(value=90.2)}}
    }
    figure = draw_dots({**charts, "4D": charts["2D"]}, unit="%", note="numbers are iterations")
    chart, other = figure.axes
    drawn = [line for line in chart.lines if line.get_marker() == "o" and len(line.get_xdata())]
    assert [line.get_ydata()[0] for line in drawn] == [90.0, 90.0, 90.2]
    assert [text.get_text() for text in chart.texts].count("7") == 3
    assert chart.get_ylim() == other.get_ylim()
    assert chart.get_ylim()[0] > 0  # dots may be cut: their place counts, not their length
    assert legend_of(figure) == ["fixed", "annealed"]
    assert_draws(figure)


@pytest.mark.parametrize("count", [3, 9])
def test_long_names_of_groups_stay_apart_and_inside(count):
    names = [f"a_capsule_network_with_seed_{number}" for number in range(count)]
    dots = {"first": {name: Measured(0.5) for name in names}}
    figure = draw_dots({"turned": dots, "shifted": dots})
    renderer = FigureCanvasAgg(figure).get_renderer()
    height = figure.canvas.get_width_height()[1]
    labels = [label for axes in figure.axes for label in axes.get_xticklabels()]
    boxes = [label.get_window_extent(renderer) for label in labels]
    titles = [axes.title.get_window_extent(renderer) for axes in figure.axes]
    assert len(boxes) == 2 * count
    assert not any(one.overlaps(two) for one, two in combinations([*boxes, *titles], 2))
    assert all(box.y0 >= 0 and box.y1 <= height and box.x0 >= 0 for box in boxes)
    assert {label.get_rotation() for label in labels} == {0.0 if count == 3 else 90.0}


@pytest.mark.parametrize("draw", [draw_bars, draw_dots])
def test_nothing_to_draw_is_said(draw):
    with pytest.raises(UserError, match="no finished run"):
        draw({"2D": {"fixed": {}}})
    with pytest.raises(UserError, match="got 7"):
        draw({"net": {str(number): {"noise": Measured(0.5)} for number in range(7)}})


def test_a_deviation_stays_within_what_is_possible():
    assert with_deviation(99.5, 1.0, most=100) == Measured(99.5, 98.5, 100)
    assert with_deviation(0.5, 1.0).low == 0
    assert with_deviation(0.5, None, "7") == Measured(0.5, None, None, "7")
    assert with_deviation(0.5, None).interval == (0, 0)
    assert Measured(5.0, 3.0, 9.0).interval == (2, 4)  # below and above
    assert measure_seeds([3.0, 1.0, 2.0]) == Measured(2.0, 1.0, 3.0)
