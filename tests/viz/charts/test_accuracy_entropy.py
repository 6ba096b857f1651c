import pytest
from viz.drawing import assert_draws, legend_of

from torchcaps.core import UserError
from torchcaps.viz import EntropyDot, Measured, draw_accuracy_entropy

DOTS = {
    "plain": [EntropyDot(9.0, Measured(99.5, 99.4, 99.6))],
    "entropy": [
        EntropyDot(3.0, Measured(99.4, words="0.1")),
        EntropyDot(0.0, Measured(99.0), is_undecided=True),
    ],
}


def test_there_is_a_dot_for_each_way_and_a_cross_for_the_thesis():
    figure = draw_accuracy_entropy({"net": DOTS}, {"net": (4.16, 99.56)})
    (axes,) = figure.axes
    assert [text.get_text() for text in axes.texts] == ["", "0.1", ""]
    drawn = [line for line in axes.lines if len(line.get_xdata()) and line.get_marker() == "o"]
    assert [line.get_markerfacecolor() == "white" for line in drawn] == [False, False, True]
    assert legend_of(figure) == ["plain", "entropy", "hollow: its trees decide nothing", "thesis, REM"]
    assert_draws(figure)


def test_the_legend_names_what_is_there_alone():
    assert legend_of(draw_accuracy_entropy({"net": {"plain": DOTS["plain"]}}, {})) == ["plain"]


def test_no_dots_are_refused():
    with pytest.raises(UserError, match="got 0"):
        draw_accuracy_entropy({}, {})
