"""Trees of several levels are drawn with the region of every capsule."""

import numpy as np
import pytest
from viz.drawing import assert_draws

from torchcaps.core import UserError
from torchcaps.viz import LevelTree, Link, Seen, draw_tree_levels
from torchcaps.viz.style import INK
from torchcaps.viz.true_trees import NOWHERE, part_colour

IMAGE = np.linspace(0, 1, 64).reshape(1, 8, 8)


def tree(*counts, words=""):
    heat = np.eye(8)
    levels = [[Seen(heat, child % 2 or None) for child in range(count)] for count in counts]
    links = [
        Link(level, child, 0, weight=child, is_right=bool(child % 2))
        for level, count in enumerate(counts[:-1])
        for child in range(count)
    ]
    return LevelTree(levels, links, words, [f"layer {level}" for level in range(len(counts))])


@pytest.mark.parametrize("parts", [2, 9])
def test_levels_of_any_width_fit_the_figure(parts):
    trees = {"true tree": tree(parts, 1), "carved": tree(32, 16, 1, words="cost $5 and 3 % of x_1")}
    figure = draw_tree_levels(IMAGE, trees, part_names=[f"part {number}" for number in range(parts)])
    assert_draws(figure)


def test_a_capsule_without_any_region_is_drawn_too():
    empty = LevelTree(
        [[Seen(np.zeros((8, 8)), None)], [Seen(np.zeros((8, 8)), "several")]], [Link(0, 0, 0, 0.0)]
    )
    assert_draws(draw_tree_levels(IMAGE, {"carved": empty}, part_names=["disc"]))


def test_frames_have_the_colour_of_what_a_capsule_stands_for():
    heat = np.ones((8, 8))
    assert [Seen(heat, meaning).colour for meaning in (2, "several", None)] == [part_colour(2), INK, NOWHERE]
    assert len({part_colour(part) for part in range(9)} | {INK, NOWHERE}) == 11


def test_no_tree_is_an_error():
    with pytest.raises(UserError, match="no trees"):
        draw_tree_levels(IMAGE, {}, part_names=[])
