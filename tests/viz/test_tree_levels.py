"""Trees of several levels are drawn with the region of every capsule."""

from itertools import combinations

import numpy as np
import pytest
from matplotlib.colors import to_rgb
from viz.drawing import assert_draws

from torchcaps.core import UserError
from torchcaps.data import Design, draw_partwhole
from torchcaps.pages.tree_levels import true_levels
from torchcaps.viz import LevelTree, Link, Seen, draw_tree_levels
from torchcaps.viz.style import INK, QUIET
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


@pytest.mark.parametrize("branches", [(3, 3), (4, 4), (5, 5)])
def test_names_of_true_nodes_stand_apart_or_are_left_to_the_legend(branches):
    drawn = draw_partwhole(1, Design(branches=branches, size=48, classes=2), seed=0)
    names = drawn.tree.names[: drawn.tree.num_parts]
    figure = draw_tree_levels(drawn.images[0], {"true tree": true_levels(drawn, 0)}, part_names=names)
    assert_draws(figure)
    texts = [text.get_text() for text in figure.axes[0].texts]
    assert "object 1" in texts
    assert ("triangle" in texts) == (branches == (3, 3))


def test_a_capsule_without_any_region_is_drawn_too():
    empty = LevelTree(
        [[Seen(np.zeros((8, 8)), None)], [Seen(np.zeros((8, 8)), "several")]], [Link(0, 0, 0, 0.0)]
    )
    assert_draws(draw_tree_levels(IMAGE, {"carved": empty}, part_names=["disc"]))


def test_frames_have_the_colour_of_what_a_capsule_stands_for():
    heat = np.ones((8, 8))
    assert [Seen(heat, meaning).colour for meaning in (2, "several", None)] == [part_colour(2), INK, NOWHERE]
    colours = [to_rgb(each) for each in (INK, NOWHERE, QUIET, *map(part_colour, range(27)))]
    assert min(np.abs(np.subtract(*pair)).max() for pair in combinations(colours, 2)) > 0.08


def test_no_tree_is_an_error():
    with pytest.raises(UserError, match="no trees"):
        draw_tree_levels(IMAGE, {}, part_names=[])
