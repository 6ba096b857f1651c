import json
import re
from html.parser import HTMLParser
from xml.etree import ElementTree

import numpy as np
import pytest
import torch
from parse.traces import random_layers

from torchcaps.core import UserError
from torchcaps.parse import ReceptiveField, parse_tree
from torchcaps.viz import Report, draw_tree, to_svg, tree_markup
from torchcaps.viz.trees.arrange import arrange

FIELD = ReceptiveField((2.0, 2.0), 4.0, 5.0)


@pytest.fixture
def tree():
    return parse_tree(random_layers(0, [24, 5, 3]), grid=(3, 4, 2))


def parts(markup):
    facts = json.loads(re.search(r'<script type="application/json">(.*?)</script>', markup, re.S)[1])
    drawing = ElementTree.fromstring(re.search(r"<svg .*?</svg>", markup, re.S)[0])
    return facts, drawing


def test_every_node_can_be_pointed_at_and_has_its_facts(tree):
    facts, drawing = parts(tree_markup(torch.rand(1, 20, 20), tree, field=FIELD))
    nodes = [part.get("data-key") for part in drawing.iter() if part.get("class") == "node"]
    assert sorted(nodes) == sorted(facts) == sorted(f"{node.layer}-{node.index}" for node in tree.nodes)
    assert all(part.get("tabindex") == "0" for part in drawing.iter() if part.get("class") == "node")


def test_a_screen_reader_finds_every_capsule_that_has_facts(tree):
    """The inside of an image is not told to it, and what can be pressed needs a role to be told."""
    _, drawing = parts(tree_markup(torch.rand(1, 20, 20), tree))
    assert drawing.get("role") == "group"
    nodes = [part for part in drawing.iter() if part.get("tabindex") == "0"]
    assert nodes
    assert all(part.get("role") == "button" and part.get("aria-label") for part in nodes)
    assert drawing.get("aria-label").startswith("parse tree of")


def test_facts_are_those_of_the_tree(tree):
    facts, _ = parts(tree_markup(torch.rand(1, 20, 20), tree, field=FIELD, class_names=["a", "b", "c"]))
    for node in tree.nodes:
        fact = facts[f"{node.layer}-{node.index}"]
        assert f"Activation {node.activation:.3f}." in fact["text"]
        edges = [
            e for e in (*tree.edges, *tree.alternatives) if (e.layer, e.child) == (node.layer, node.index)
        ]
        if node.layer < 2:
            expected = sorted((round(edge.coupling, 4) for edge in edges), reverse=True)
            assert [bar["value"] for bar in fact["bars"]] == expected[:8]
            assert fact["even"] == pytest.approx(1 / (5, 3)[node.layer])
        if node.layer == 1:
            assert {bar["name"] for bar in fact["bars"]} <= {"a", "b", "c"}
    assert facts[f"2-{tree.chosen}"]["title"] == "abc"[tree.chosen]


def test_children_of_the_classes_say_what_they_add(tree):
    shares = np.linspace(-0.1, 0.3, 5)
    facts, _ = parts(tree_markup(torch.rand(1, 20, 20), tree, class_names=["a", "b", "c"], shares=shares))
    for node in tree.nodes:
        words = f"It adds {shares[node.index]:+.1%} to the length of" if node.layer == 1 else "length"
        assert (words in facts[f"{node.layer}-{node.index}"]["text"]) == (node.layer == 1)
    with pytest.raises(UserError, match="5 capsules"):
        tree_markup(torch.rand(1, 20, 20), tree, shares=shares[1:])


def test_a_patch_is_the_receptive_field_cut_at_the_border(tree):
    facts, _ = parts(tree_markup(torch.rand(3, 12, 16), tree, field=FIELD))
    for node in tree.layer(0):
        row, column, _ = node.position
        seen_x = [x for x in range(16) if abs(x - (2 + 4 * column)) <= 2]
        seen_y = [y for y in range(12) if abs(y - (2 + 4 * row)) <= 2]
        assert facts[f"0-{node.index}"]["patch"] == [seen_x[0], seen_y[0], len(seen_x), len(seen_y)]
    assert not any("patch" in facts[f"1-{node.index}"] for node in tree.layer(1))


@pytest.mark.parametrize("sizes", [[24, 3], [24, 5, 3]])
def test_the_tree_says_how_large_it_is_and_what_is_drawn_of_it(sizes):
    layers = random_layers(0, sizes)
    whole, cut = (parse_tree(layers, top=top) for top in (None, 2))
    size, which = len(whole.layer(0)), "capsules of the first layer" if len(sizes) == 3 else "capsules"
    assert f"{size} of 24 {which} are in the tree. Point at one" in tree_markup(torch.rand(20, 20), whole)
    drawn = len(cut.layer(0))
    assert drawn < cut.capsules_in_tree[0]
    words = f"{cut.capsules_in_tree[0]} of 24 {which} are in the tree; the strongest {drawn} are drawn."
    assert words in tree_markup(torch.rand(20, 20), cut)
    heading = f"{cut.capsules_in_tree[0]} of 24 in the tree, {drawn} drawn"
    assert heading in to_svg(draw_tree(torch.rand(20, 20), cut))


def test_nobody_is_asked_to_point_at_an_empty_tree():
    markup = tree_markup(torch.rand(20, 20), parse_tree(random_layers(0, [24, 3]), threshold=1.0))
    assert "0 of 24 capsules are in the tree.</p>" in markup
    assert "Point at" not in markup


def test_without_a_grid_there_are_no_patches(tree):
    assert "to see the patch it looks at, its" in tree_markup(torch.rand(1, 20, 20), tree, field=FIELD)
    tree = parse_tree(random_layers(0, [24, 3]))
    markup = tree_markup(torch.rand(20, 20), tree)
    assert "Point at one to see its activation and its couplings." in markup
    facts, drawing = parts(markup)
    assert not any("patch" in fact for fact in facts.values())
    assert not [part for part in drawing.iter() if part.get("class") == "dot"]


def test_nothing_comes_from_outside_and_names_are_never_markup(tree):
    names = ["</script><b>", 'quo"te', "&amp"]
    markup = tree_markup(torch.rand(1, 20, 20), tree, class_names=names)
    assert not re.search(r'(src|href)="(?!data:)', markup)
    assert "<b>" not in markup
    facts, _ = parts(markup)
    assert facts[f"2-{tree.chosen}"]["title"] == names[tree.chosen]
    tags = []
    reader = HTMLParser()
    reader.handle_starttag = lambda tag, attributes: tags.append(tag)
    reader.feed(markup)
    assert tags.count("div") == 2
    assert tags.count("script") == 2


def test_the_same_drawing_gives_the_same_svg(tree):
    image = torch.rand(1, 20, 20)
    first, second = (to_svg(draw_tree(image, tree, field=FIELD)) for _ in range(2))
    assert first == second
    texts = [part.text for part in ElementTree.fromstring(first).iter() if part.tag.endswith("text")]
    assert "classes" in texts


@pytest.mark.parametrize("sizes", [[24, 3], [24, 5, 3]])
def test_page_and_figure_draw_one_scene(sizes):
    tree = parse_tree(random_layers(0, sizes), grid=(3, 4, 2))
    scene = arrange(tree, (20, 20, 3), ["0", "1", "2"], field=FIELD)
    _, drawing = parts(tree_markup(torch.rand(1, 20, 20), tree, field=FIELD))
    paths = [part for part in drawing.iter() if part.tag == "path"]
    for path, stroke in zip(paths, scene.strokes, strict=True):
        numbers = [float(number) for number in re.findall(r"-?[\d.]+", path.get("d"))]
        assert numbers == pytest.approx([value for point in stroke.curve for value in point], abs=0.06)
        assert (path.get("stroke"), path.get("stroke-width")) == (stroke.colour, f"{stroke.width:.2f}")
    assert len([part for part in drawing.iter() if part.tag == "rect"]) == len(scene.shapes)
    texts = [part.text for part in drawing.iter() if part.tag == "text"]
    assert sorted(texts) == sorted(words.text for words in scene.words)


@pytest.mark.parametrize("sizes", [[24, 3], [24, 5, 3]])
def test_pointing_can_light_the_chosen_class_and_fade_all_others(sizes):
    tree = parse_tree(random_layers(0, sizes))
    markup = tree_markup(torch.rand(1, 20, 20), tree)
    _, drawing = parts(markup)
    root = re.search('data-root="([^"]+)"', markup)[1]
    assert root == f"{len(sizes) - 1}-{tree.chosen}"
    groups = {part.get("data-key"): part.get("class") for part in drawing.iter() if part.get("data-key")}
    assert {groups[f"{len(sizes) - 1}-{number}"] for number in range(3)} == {"node", "other"}
    assert groups[root] == "node"
    ends = [part.get("data-of").split() for part in drawing.iter() if part.tag == "path"]
    assert {key for keys in ends for key in keys} <= set(groups)


def test_the_page_says_how_far_couplings_are_from_an_even_split(tree):
    even = parse_tree(random_layers(0, [24, 3], sharpness=0.01))
    said, warned = tree_markup(torch.rand(1, 20, 20), tree), tree_markup(torch.rand(1, 20, 20), even)
    first, last = tree.evenness
    largest = f"{first.largest:.2f} and {last.largest:.2f}"
    assert (
        f"Median coupling to the strongest parent, by layer: {largest}; even shares are 0.20 and 0.33."
        in said
    )
    share = even.evenness[0].to_chosen
    assert f"Median coupling to {even.chosen}: {share:.3f}; an even share is 0.333." in warned
    assert "<strong></strong>" in said
    assert "<strong>This network hardly routes: on this image 0% of the capsules" in warned


def test_couplings_that_do_not_add_up_to_one_are_compared_with_their_mean():
    (layer,) = random_layers(0, [24, 3])
    weak = layer._replace(routed=layer.routed._replace(coupling=layer.routed.coupling / 20 - 0.01))
    said = tree_markup(torch.rand(1, 20, 20), parse_tree([weak]))
    assert "the mean of all couplings is 0.007." in said  # 1 / 60 - 0.01
    assert "0% of the capsules give a class over 0.33 more than they give on average." in said
    assert "do not add up to one" in said
    assert "The tree has those above 0.33." in said
    assert "hardly routes: on this image 0% of the capsules give a class over 0.17 more than they" in said


@pytest.mark.parametrize("sizes", [[24, 3], [24, 5, 3]])
@pytest.mark.parametrize("factor", [1, 2])
def test_only_couplings_that_are_a_split_have_an_even_share(sizes, factor):
    layers = [
        layer._replace(routed=layer.routed._replace(coupling=factor * layer.routed.coupling))
        for layer in random_layers(0, sizes)
    ]
    tree = parse_tree(layers)
    facts, drawing = parts(tree_markup(torch.rand(1, 20, 20), tree))
    words = [part.text for part in drawing.iter() if part.text and part.tag.endswith("text")]
    assert tree.edges
    assert tree.is_split == (factor == 1)
    assert any("even" in text for text in words) == tree.is_split
    assert all(
        ("the mark is an even share, 0." in fact["heading"]) == tree.is_split for fact in facts.values()
    )


def test_one_capsule_is_in_the_tree_and_several_are():
    (layer,) = random_layers(0, [24, 3])
    coupling = torch.full_like(layer.routed.coupling, 0.1)
    coupling[:, 0, 1] = 0.8
    one = layer._replace(routed=layer.routed._replace(coupling=coupling))
    assert "1 of 24 capsules is in the tree." in tree_markup(
        torch.rand(1, 20, 20), parse_tree([one], chosen=1)
    )


def test_the_numbers_of_a_quantized_network_are_marked():
    layers, own = random_layers(0, [24, 5, 3]), random_layers(1, [24, 5, 3])
    for unquantized, is_marked in ((own, True), (None, False)):
        tree = parse_tree(layers, unquantized=unquantized)
        markup = tree_markup(torch.rand(1, 20, 20), tree)
        facts, _ = parts(markup)
        for key, fact in facts.items():
            assert (", with rounded couplings;" in fact["heading"]) == is_marked
            is_hidden = key.startswith("1-")
            assert ("with rounded couplings" in fact["text"]) == (is_marked and is_hidden)
        assert ("Couplings are drawn rounded to levels" in markup) == is_marked
        activation = (unquantized or layers)[-1].routed.activations[0, tree.chosen]
        assert f">{activation:.2f}</text>" in markup


def test_two_trees_can_stand_on_one_page(tree):
    report = Report("Two")
    for number in range(2):
        report.insert(f"Tree {number}", "", tree_markup(torch.rand(1, 20, 20), tree))
    page = report.to_html()
    assert page.count('class="tree"') == 2
    assert not re.search(r'\bid="', page)  # nothing that would have to differ
