import re

import numpy as np
import pytest
import torch
from matplotlib.collections import PatchCollection, PathCollection
from matplotlib.colors import to_hex
from parse.traces import random_layers
from viz.drawing import assert_draws

from torchcaps.core import UserError
from torchcaps.parse import parse_tree, receptive_field
from torchcaps.viz import draw_tree
from torchcaps.viz.trees.arrange import arrange

NAMES = ["airplane", "automobile", "bird", "a class whose name never ends"]


@pytest.mark.parametrize(
    ("names", "is_placed", "label"), [(None, True, None), (NAMES, True, 3), (NAMES, False, None)]
)
def test_tree(forward_pass, names, is_placed, label):
    config, images, output = forward_pass
    field = receptive_field(config.image_size, config.stages) if is_placed else None
    tree = parse_tree(output.layers, grid=(2, 2, 2))
    assert_draws(draw_tree(images[0], tree, field=field, class_names=names, label=label))


@pytest.mark.parametrize("threshold", [0.0, 0.2, 1.0], ids=["all", "some", "none"])
@pytest.mark.parametrize("sizes", [(16, 3), (40, 12, 30)], ids=["one layer", "two layers"])
def test_tree_of_any_depth(threshold, sizes):
    tree = parse_tree(random_layers(0, sizes), threshold=threshold)
    assert_draws(draw_tree(torch.rand(3, 16, 16), tree))


def test_names_for_every_class(forward_pass):
    _, images, output = forward_pass
    with pytest.raises(UserError, match="4 names, got 2"):
        draw_tree(images[0], parse_tree(output.layers), class_names=["a", "b"])


@pytest.mark.parametrize("sizes", [(16, 3), (300, 12, 100)], ids=["one layer", "two layers"])
def test_what_is_drawn_is_the_scene(sizes):
    tree = parse_tree(random_layers(0, sizes))
    scene = arrange(tree, (16, 16, 3), [str(n) for n in range(sizes[-1])])
    (board,) = draw_tree(torch.rand(3, 16, 16), tree).axes
    (strokes,) = (drawn for drawn in board.collections if isinstance(drawn, PathCollection))
    (shapes,) = (drawn for drawn in board.collections if isinstance(drawn, PatchCollection))
    assert len(shapes.get_paths()) == len(scene.shapes)
    for path, stroke in zip(strokes.get_paths(), scene.strokes, strict=True):
        np.testing.assert_allclose(path.vertices, stroke.curve)
    assert strokes.get_linewidths() == pytest.approx([0.75 * stroke.width for stroke in scene.strokes])
    assert [to_hex(colour) for colour in strokes.get_edgecolors()] == [s.colour for s in scene.strokes]
    assert [text.get_text() for text in board.texts][: len(scene.words)] == [w.text for w in scene.words]


def caption(figure):
    return " ".join(text.get_text() for text in figure.axes[0].texts)


@pytest.mark.parametrize("sizes", [(16, 4), (16, 8, 4)])
def test_a_network_that_hardly_routes_is_told(sizes):
    image = torch.rand(3, 16, 16)
    even = draw_tree(image, parse_tree(random_layers(0, sizes, sharpness=0.01)))
    sharp = draw_tree(image, parse_tree(random_layers(0, sizes, sharpness=4.0)))
    share = "on this image 0%" if len(sizes) == 2 else "fewer than 5%"
    assert f"This network hardly routes: {share} of the capsules" in caption(even)
    assert "hardly routes" not in caption(sharp)
    words = "an even share is 0.250" if len(sizes) == 2 else "and 0.25."  # that of the last layer
    assert words in caption(even)
    assert words in caption(sharp)
    assert_draws(even)


@pytest.mark.parametrize("sizes", [(8, 8), (8, 5, 8)])
def test_any_name_of_a_class_can_be_drawn(sizes):
    names = [r"$\frac{a$", "a$b$c", "\\", "\u732b", "\U0001f436\ufe0f", "\n\t", "<script>'\"", "&amp;"]
    tree = parse_tree(random_layers(0, sizes))
    assert_draws(draw_tree(torch.rand(3, 16, 16), tree, class_names=names, label=1))


def test_the_chosen_of_many_classes_is_named_inside_the_figure():
    tree = parse_tree(random_layers(0, (8, 5, 60)), chosen=59)
    figure = draw_tree(torch.rand(3, 16, 16), tree, class_names=["a long name of a class"] * 60)
    assert_draws(figure)
    assert "a long name of a cl…" in caption(figure)


@pytest.mark.parametrize("sizes", [(8, 4), (8, 5, 4)])
def test_a_class_is_named_whole_where_there_is_room(sizes):
    tree = parse_tree(random_layers(0, sizes), chosen=1)
    names = [f"a class of words {number}" for number in range(4)]
    figure = draw_tree(torch.rand(3, 16, 16), tree, class_names=names)
    assert_draws(figure)
    assert re.search(r"(predicted|explaining) a class of words 1", caption(figure))


def test_an_image_keeps_its_proportions():
    tree = parse_tree(random_layers(0, (24, 3)), grid=(3, 4, 2))
    (board,) = draw_tree(torch.rand(3, 10, 40), tree).axes
    left, right, bottom, top = board.images[0].get_extent()
    assert (right - left) == pytest.approx(4 * (bottom - top))
