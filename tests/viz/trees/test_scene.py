import pytest
from hypothesis import given
from hypothesis import strategies as st
from parse.traces import random_layers

from torchcaps.parse import ReceptiveField, parse_tree
from torchcaps.viz.trees.arrange import arrange
from torchcaps.viz.trees.scene import coupling_stroke, edge_strength, shown_classes

FIELD = ReceptiveField((2.0, 2.0), 4.0, 5.0)


@given(st.floats(0, 1), st.integers(2, 50))
def test_strength_starts_at_an_even_share(coupling, parents):
    strength = edge_strength(coupling, parents)
    assert 0 <= strength <= 1
    assert (strength == 0) == (coupling * parents <= 1)
    assert edge_strength(1 / parents, parents) == pytest.approx(0, abs=1e-12)
    assert edge_strength(1.0, parents) == 1


def test_a_single_parent_is_no_choice():
    assert edge_strength(1.0, 1) == 0


def test_an_even_coupling_is_thin_and_grey_whoever_gets_it():
    chosen, other = (coupling_stroke((0, 0), (1, 1), 0.0, is_chosen=value) for value in (True, False))
    assert chosen == other
    strong, weak = (coupling_stroke((0, 0), (1, 1), strength) for strength in (0.8, 0.2))
    assert strong.width > weak.width > chosen.width
    assert len({strong.colour, weak.colour, chosen.colour}) == 3


def strokes_of(scene):
    return {stroke.keys: stroke for stroke in scene.strokes if len(stroke.keys) == 2}


@pytest.mark.parametrize("sizes", [(24, 3), (24, 5, 3), (300, 5, 3)])
def test_every_coupling_of_the_tree_has_a_stroke_as_strong_as_it_is_uneven(sizes):
    tree = parse_tree(random_layers(0, sizes, sharpness=1.0))
    strokes = strokes_of(arrange(tree, (20, 20), ["a", "b", "c"]))
    assert tree.edges
    for edge in tree.edges:
        stroke = strokes[(edge.layer, edge.child), (edge.layer + 1, edge.parent)]
        strength = edge_strength(edge.coupling, sizes[edge.layer + 1])
        assert stroke.width == pytest.approx(coupling_stroke((0, 0), (0, 0), strength).width)


@pytest.mark.parametrize("sizes", [(24, 3), (24, 5, 3)])
@pytest.mark.parametrize("field", [None, FIELD])
def test_dots_stand_where_capsules_look(sizes, field):
    tree = parse_tree(random_layers(0, sizes), grid=(3, 4, 2))
    scene = arrange(tree, (12, 16, 3), ["a", "b", "c"], field=field)
    (left, top, width, height) = scene.pictures[0]
    assert width / height == pytest.approx(16 / 12)
    nodes = {(0, node.index): node for node in tree.layer(0)}
    dots = [shape for shape in scene.shapes if shape.kind == "dot"]
    assert {key for dot in dots for key in dot.keys} == set(nodes)
    for dot in dots:
        places = {nodes[key].position[:2] for key in dot.keys}
        assert len(places) == 1  # capsules of one place share a dot
        ((row, column),) = places
        across, down = (
            ((4 * column + 2.5) / 16, (4 * row + 2.5) / 12)
            if field
            else ((column + 0.5) / 4, (row + 0.5) / 3)
        )
        middle = dot.box[0] + dot.box[2] / 2, dot.box[1] + dot.box[3] / 2
        assert middle == pytest.approx((left + width * across, top + height * down))


@pytest.mark.parametrize("seed", range(14, 18))
def test_the_frame_is_that_of_the_largest_dot(seed):
    tree = parse_tree(
        random_layers(seed, (72, 3), sharpness=0.5), grid=(3, 4, 6)
    )  # most places have several capsules
    scene = arrange(tree, (12, 16, 3), ["a", "b", "c"], field=ReceptiveField((2.0, 2.0), 4.0, 1.0))
    (frame,) = (shape.box for shape in scene.shapes if shape.kind == "field")
    largest = max((shape.box for shape in scene.shapes if shape.kind == "dot"), key=lambda box: box[2])
    middles = [(box[0] + box[2] / 2, box[1] + box[3] / 2) for box in (frame, largest)]
    assert middles[0] == pytest.approx(middles[1])


def test_classes_are_all_there_or_the_strongest_and_the_chosen():
    layers = random_layers(0, (8, 30))
    tree = parse_tree(layers, chosen=int(layers[-1].routed.activations[0].argmin()))
    shown = shown_classes(tree)
    assert len(shown) == 12
    assert tree.chosen in shown
    strongest = sorted(range(30), key=lambda number: -tree.class_activations[number])[:11]
    assert set(shown) == {*strongest, tree.chosen}
    assert shown_classes(parse_tree(random_layers(0, (8, 5)))) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("size", [64, 65])
def test_wide_layers_show_the_capsules_in_the_tree_alone(size):
    tree = parse_tree(random_layers(0, (size, 5, 3)), top=4)
    scene = arrange(tree, (20, 20), ["a", "b", "c"])
    first = [shape for shape in scene.shapes if shape.keys and shape.keys[0][0] == 0]
    assert len(first) == (64 if size == 64 else len(tree.layer(0)))


@pytest.mark.parametrize("sizes", [(24, 300), (24, 6, 300)])
def test_an_even_share_of_many_classes_is_not_said_to_be_zero(sizes):
    scene = arrange(parse_tree(random_layers(0, sizes)), (20, 20), [str(number) for number in range(300)])
    said = " ".join([*(words.text for words in scene.words if "even" in words.text), scene.caption.text])
    assert "0.003" in said
    assert "0.00 " not in said
    assert "0.00." not in said


@pytest.mark.parametrize("sizes", [(24, 10), (24, 6, 10)])
@pytest.mark.parametrize("letter", ["m", "\u732b"])
def test_names_of_classes_touch_neither_bars_nor_each_other(sizes, letter):
    tree = parse_tree(random_layers(0, sizes))
    scene = arrange(tree, (20, 20), [letter * (number + 1) for number in range(10)])
    bars = [shape.box for shape in scene.shapes if shape.kind == "class" and shape.box[2] > 40]
    ends = {}
    for words in scene.words:
        if words.key is None or not words.text.startswith(letter):
            continue
        wide = sum(words.size * (1.0 if each == "\u732b" else 0.6) for each in words.text)
        left = words.place[0] - (wide / 2 if words.align == "center" else 0)
        assert all(left + wide <= box[0] for box in bars)
        ends[words.key[1]] = (left, left + wide)
    assert len(ends) == 10
    if len(sizes) == 3:  # side by side
        assert all(ends[number][1] <= ends[number + 1][0] for number in range(9))


@pytest.mark.parametrize(("top", "words"), [(None, "not in the tree"), (4, "not in the tree, or not drawn")])
def test_a_capsule_of_the_tree_that_is_not_drawn_is_not_said_to_be_outside(top, words):
    tree = parse_tree(random_layers(0, (24, 6, 3), sharpness=1.0), top=top)
    assert (tree.capsules_in_tree == tuple(len(tree.layer(number)) for number in range(3))) == (top is None)
    scene = arrange(tree, (20, 20), ["a", "b", "c"])
    assert [entry.text for entry in scene.words if entry.text.startswith("not in")] == [words]


def test_a_layer_that_hardly_routes_is_named():
    layers = [*random_layers(0, (24, 6), sharpness=0.01), *random_layers(0, (6, 3), sharpness=4.0)]
    scene = arrange(parse_tree(layers), (20, 20), ["a", "b", "c"])
    assert scene.caption.warning.startswith("Layer 1 hardly routes:")
