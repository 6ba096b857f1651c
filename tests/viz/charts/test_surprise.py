import numpy as np
import pytest
from viz.drawing import assert_draws, legend_of

from torchcaps.core import UserError
from torchcaps.viz import LevelShares, draw_distributions, draw_surprise


@pytest.mark.parametrize("score", [90.0, float("inf")])
def test_surprise_is_drawn(score):
    assert_draws(draw_surprise(score, np.random.default_rng(0).normal(40, 9, 300)))


def test_a_tree_like_all_others_is_drawn_in_the_middle_of_their_bar():
    (axes,) = draw_surprise(0.5, np.full(25, 0.5)).axes
    (bar,) = (bar for bar in axes.patches if bar.get_height())
    assert bar.get_x() + bar.get_width() / 2 == pytest.approx(0.5)


def test_surprise_needs_others():
    with pytest.raises(UserError, match="no reference images"):
        draw_surprise(1.0, np.array([np.inf]))


def test_distributions_have_a_line_for_each_class_and_one_for_their_mean():
    shares = np.array([[0.9, 0.1, 0.0], [0.7, 0.2, 0.1]])
    figure = draw_distributions({"net": LevelShares(np.array([0.0, 0.5, 1.0]), shares)})
    lines = [line.get_ydata().tolist() for line in figure.axes[0].lines]
    assert lines == [*shares.tolist(), pytest.approx([0.8, 0.15, 0.05])]
    assert legend_of(figure) == ["one class", "mean over classes"]
    assert_draws(figure)
    with pytest.raises(UserError, match="no finished run"):
        draw_distributions({})
