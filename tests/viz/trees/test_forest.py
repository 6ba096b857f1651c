import numpy as np
import pytest
from matplotlib.colors import to_hex
from parse.traces import random_layers
from viz.drawing import assert_draws

from torchcaps.core import UserError
from torchcaps.parse import parse_tree
from torchcaps.viz import Forest, draw_forest
from torchcaps.viz.style import INK, WRONG
from torchcaps.viz.trees.forest import arrange_forest

SIZES = (16, 16, 16, 16, 10)
NAMES = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]


def trees(sharpness, count=2, sizes=SIZES):
    layers = random_layers(0, sizes, batch=count, sharpness=sharpness)
    return [parse_tree(layers, sample=sample, top=None) for sample in range(count)]


def scene_of(grown):
    return arrange_forest((8, 8, 3), {"net": Forest(grown, [0.0] * 5)}, NAMES, None)


def marks(scene, *kinds):
    """Middles of circles, without those of the legend."""
    boxes = [shape.box for shape in scene.shapes if shape.kind in kinds and shape.fill != "none"]
    return [(left + width / 2, top + height / 2) for left, top, width, height in boxes]


def test_a_forest_draws_and_so_does_one_of_classes_alone():
    means = [15.8, 13.5, 12.8, 7.0, 1.0]
    forests = {"without REM": Forest(trees(4.0), means), "with REM": Forest(trees(0.0), means)}
    images = np.linspace(0, 1, 2 * 3 * 64).reshape(2, 3, 8, 8)
    assert_draws(draw_forest(images, forests, class_names=NAMES, labels=[1, 1]))


def test_every_capsule_has_one_circle_or_dot_and_every_coupling_its_stroke():
    grown = trees(2.0)
    scene = scene_of(grown)
    circles, dots = marks(scene, "capsule", "class"), marks(scene, "outside")
    inside = sum(len(tree.nodes) for tree in grown)
    assert len(circles) == inside
    assert len(dots) == 2 * sum(SIZES) - inside
    assert len(np.unique(circles + dots, axis=0)) == 2 * sum(SIZES)
    assert sum(bool(stroke.keys) for stroke in scene.strokes) == sum(len(tree.edges) for tree in grown)


def test_a_stronger_coupling_has_a_stronger_stroke_between_its_capsules():
    (tree,) = trees(2.0, count=1)
    scene = scene_of([tree])
    strokes = [stroke for stroke in scene.strokes if stroke.keys]
    widths, alphas = [stroke.width for stroke in strokes], [stroke.alpha for stroke in strokes]
    assert (np.diff(widths) >= 0).all()  # the strongest last, on top
    assert (np.diff(alphas) >= 0).all()
    assert widths[-1] > widths[0]
    circles = {tuple(np.round(place, 6)) for place in marks(scene, "capsule", "class")}
    for stroke in strokes:
        assert {tuple(np.round(end, 6)) for end in (stroke.start, stroke.end)} <= circles
        assert {stroke.curve[0], stroke.curve[-1]} == {stroke.start, stroke.end}


def test_it_says_how_many_even_shares_couplings_are():
    (tree,) = trees(2.0, count=1)
    words = [words.text for words in scene_of([tree]).words]
    for layer in range(4):
        couplings = [edge.coupling for edge in tree.edges if edge.layer == layer]
        assert f"{np.median(couplings) * SIZES[layer + 1]:.1f} times even" in words


def test_the_class_is_named_and_a_wrong_one_in_red():
    (tree,) = trees(2.0, count=1)
    other = (tree.chosen + 1) % 10
    for label, words, colour in (
        (None, NAMES[tree.chosen], INK),
        (tree.chosen, NAMES[tree.chosen], INK),
        (other, f"{NAMES[tree.chosen]}, not {NAMES[other]}", WRONG),
    ):
        labels = None if label is None else [label]
        forests = {"net": Forest([tree], [1.25] * 5)}
        (board,) = draw_forest(np.zeros((1, 8, 8)), forests, class_names=NAMES, labels=labels).axes
        colours = {text.get_text(): to_hex(text.get_color()) for text in board.texts}
        assert colours[words] == colour
        assert {"layer 1", "layer 4", "classes", "1.2 of 16", "1.2 of 10"} <= set(colours)


@pytest.mark.parametrize(
    ("forests", "match"),
    [
        ({}, "no trees"),
        ({"net": Forest(trees(2.0), [0.0] * 5)}, "net: 1 images need a tree each, got 2"),
        ({"net": Forest(trees(2.0, count=1), [0.0] * 4)}, "number for each layer of the trees, got 4"),
    ],
)
def test_trees_that_do_not_fit_are_refused(forests, match):
    with pytest.raises(UserError, match=match):
        draw_forest(np.zeros((1, 8, 8)), forests)


def test_wrong_names_are_refused():
    with pytest.raises(UserError, match="10 classes need 10 names, got 2"):
        draw_forest(
            np.zeros((1, 8, 8)), {"net": Forest(trees(2.0, count=1), [0.0] * 5)}, class_names=["a", "b"]
        )
