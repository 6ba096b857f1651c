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
from torchcaps.viz.pictures import soften
from torchcaps.viz.style import HEAT_MAP, INK, QUIET
from torchcaps.viz.true_trees import NOWHERE, Branch, TreeOnImage, draw_true_trees, part_colour

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


def test_lines_lead_from_the_top_of_a_child_to_the_foot_of_its_parent():
    heat = np.zeros((8, 8))
    levels = [[Seen(heat, 0), Seen(heat, 1), Seen(heat, 2)], [Seen(heat, 3), Seen(heat, 4)], [Seen(heat, 5)]]
    links = [
        Link(0, 0, 1, weight=4.0, is_right=False),
        Link(0, 2, 0, weight=1.0),
        Link(1, 0, 0, weight=0.5),
        Link(1, 1, 0, weight=0.05, is_right=False),
    ]
    figure = draw_tree_levels(IMAGE, {"carved": LevelTree(levels, links)}, part_names=["disc"])
    (board,) = figure.axes
    boxes = [patch.get_bbox() for patch in board.patches]
    rows = [boxes[:3], boxes[3:5], boxes[5:]]  # from the lowest level up; y runs downwards
    (lines,) = board.collections
    drawn = sorted(links, key=lambda link: link.is_right)  # right ones lie above the others
    for link, (start, end) in zip(drawn, lines.get_segments(), strict=True):
        child, parent = rows[link.level][link.child], rows[link.level + 1][link.parent]
        assert tuple(start) == pytest.approx(((child.x0 + child.x1) / 2, min(child.y0, child.y1)))
        assert tuple(end) == pytest.approx(((parent.x0 + parent.x1) / 2, max(parent.y0, parent.y1)))
        assert end[1] < start[1]
    colours = [tuple(colour[:3]) for colour in lines.get_colors()]
    assert colours == [to_rgb(each) for each in (QUIET, QUIET, part_colour(2), part_colour(3))]
    wide = dict(zip(drawn, lines.get_linewidths(), strict=True))
    assert wide[links[0]] == wide[links[2]] > wide[links[1]] > wide[links[3]]  # each level has its strongest


def test_a_region_is_hot_where_the_capsule_answers_for_it():
    heat = np.zeros((8, 8))
    heat[2, 5] = 3.0
    dark = np.zeros((3, 8, 8))
    figure = draw_tree_levels(dark, {"carved": LevelTree([[Seen(heat, None)]], [])}, part_names=["disc"])
    region = np.asarray(figure.axes[0].images[1].get_array())
    pale = soften(region * 0, 0.3)
    assert np.argwhere(np.abs(region - pale).max(-1) > 0.05).tolist() == [[2, 5]]
    assert region[2, 5] == pytest.approx(0.15 * pale[2, 5] + 0.85 * np.array(HEAT_MAP(1.0)[:3]))


def test_a_true_tree_is_drawn_at_the_pixels_of_its_parts():
    branches = [Branch(2.0, 6.5, 1, weight=3.0), Branch(7.0, 1.0, None), Branch(4.0, 3.0, 0, weight=1.5)]
    tree = TreeOnImage(branches, (5.0, 4.0), "three parts")
    figure = draw_true_trees(IMAGE, [{"true": tree}], part_names=["disc", "bar"])
    axes = figure.axes[-1]
    assert (axes.get_xlim(), axes.get_ylim()) == ((0, 8), (8, 0))  # as the rows of an image run
    lines = axes.collections[0]
    starts = [segment[0].tolist() for segment in lines.get_segments()]
    assert starts == [[7, 1], [2, 6.5], [4, 3]]  # clutter first, so that parts lie above it
    assert all(segment[1].tolist() == [5, 4] for segment in lines.get_segments())
    colours = [tuple(colour[:3]) for colour in lines.get_colors()]
    assert colours == [to_rgb(each) for each in (NOWHERE, part_colour(1), part_colour(0))]
    thin, thick, middle = lines.get_linewidths()
    assert (thick - middle) / (thick - thin) == pytest.approx((3 - 1.5) / (3 - 1))
    assert thick == pytest.approx(2.5)  # whatever the weights add up to


def test_no_tree_is_an_error():
    with pytest.raises(UserError, match="no trees"):
        draw_tree_levels(IMAGE, {}, part_names=[])
