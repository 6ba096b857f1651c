import dataclasses
import json

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from parse.traces import random_layers

from torchcaps.core import Capsules, UserError
from torchcaps.core.types import LayerTrace, Routed
from torchcaps.models import create_model
from torchcaps.parse import parse_tree, quantize


def slow_edges(layers, sample, root, threshold):
    """Every (layer, child, parent) of the tree, by asking each pair in turn."""
    kept, parents = set(), {root}
    for number in range(len(layers) - 1, -1, -1):
        coupling = layers[number].routed.coupling[sample].tolist()
        limit = threshold if threshold is not None else 1 / len(coupling[0])
        here = set()
        for child, row in enumerate(coupling):
            shown = number == 0
            if number:
                below = layers[number - 1].routed.coupling[sample].tolist()
                below_limit = threshold if threshold is not None else 1 / len(below[0])
                shown = sum(other[child] > below_limit for other in below) >= 1
            here |= {(number, child, parent) for parent in parents if shown and row[parent] > limit}
        kept |= here
        parents = {child for _, child, _ in here}
    return kept


@settings(max_examples=50, deadline=None)
@given(
    st.integers(0, 2**31),
    st.lists(st.integers(2, 9), min_size=2, max_size=4),
    st.none() | st.floats(0, 1),
    st.integers(0, 1),
)
def test_the_tree_is_the_one_found_by_asking_each_pair(seed, sizes, threshold, sample):
    layers = random_layers(seed, sizes)
    tree = parse_tree(layers, sample=sample, threshold=threshold, top=None)
    root = layers[-1].routed.activations[sample].argmax().item()
    expected = slow_edges(layers, sample, root, threshold)
    assert tree.chosen == root
    assert {(edge.layer, edge.child, edge.parent) for edge in tree.edges} == expected
    ends = {(layer, child) for layer, child, _ in expected} | {(len(layers), root)}
    assert {(node.layer, node.index) for node in tree.nodes} == ends


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**31), st.integers(1, 12))
def test_top_keeps_the_strongest_contributions(seed, top):
    layers = random_layers(seed, [30, 4], sharpness=1.0)
    everything = parse_tree(layers, top=None).edges
    kept = parse_tree(layers, top=top).edges
    strongest = sorted((edge.contribution for edge in everything), reverse=True)[:top]
    assert [edge.contribution for edge in kept] == strongest


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**31), st.lists(st.integers(2, 9), min_size=2, max_size=4), st.integers(1, 4))
def test_a_cut_tree_still_counts_all_of_its_capsules(seed, sizes, top):
    layers = random_layers(seed, sizes, sharpness=1.0)
    whole, cut = parse_tree(layers, top=None), parse_tree(layers, top=top)
    expected = tuple(len(whole.layer(number)) for number in range(len(sizes)))
    assert whole.capsules_in_tree == cut.capsules_in_tree == expected
    assert dataclasses.replace(whole, capsules_in_tree=()).capsules_in_tree == expected
    data = json.loads(cut.to_json())
    assert data["capsules_in_tree"] == list(expected)
    assert data["top"] == top


def test_edges_carry_what_the_forward_pass_said():
    layers = random_layers(0, [12, 5, 3])
    tree = parse_tree(layers, sample=1)
    activations = {(node.layer, node.index): node.activation for node in tree.nodes}
    for edge in (*tree.edges, *tree.alternatives):
        coupling = layers[edge.layer].routed.coupling[1, edge.child, edge.parent].item()
        assert edge.coupling == pytest.approx(coupling)
        assert edge.contribution == pytest.approx(coupling * activations[edge.layer, edge.child])
        assert edge.coupling > tree.thresholds[edge.layer]
    assert not set(tree.edges) & set(tree.alternatives)


def test_a_capsule_that_receives_nothing_is_not_shown():
    children = Capsules(torch.zeros(1, 2, 2), torch.ones(1, 2))
    below = Routed(torch.zeros(1, 2, 2), torch.ones(1, 2), torch.tensor([[[0.9, 0.1], [0.8, 0.2]]]))
    above = Routed(torch.zeros(1, 2, 2), torch.tensor([[0.2, 0.9]]), torch.tensor([[[0.1, 0.9]] * 2]))
    tree = parse_tree((LayerTrace(children, below), LayerTrace(below.capsules, above)), threshold=0.5)
    assert [node.index for node in tree.layer(1)] == [0]
    assert [(edge.child, edge.parent) for edge in tree.edges if edge.layer == 1] == [(0, 1)]


def test_positions_follow_the_order_height_width_type():
    tree = parse_tree(random_layers(0, [24, 3]), grid=(3, 4, 2), top=None, threshold=0.0)
    for node in tree.layer(0):
        row, column, kind = node.position
        assert node.index == (row * 4 + column) * 2 + kind
    assert all(node.position is None for node in tree.layer(1))


def test_another_class_can_be_explained():
    layers = random_layers(0, [12, 3])
    for chosen in range(3):
        tree = parse_tree(layers, chosen=chosen)
        assert tree.chosen == chosen
        assert {edge.parent for edge in tree.edges} <= {chosen}


def test_the_json_text_holds_every_field():
    tree = parse_tree(random_layers(0, [12, 5, 3]), grid=(2, 3, 2))
    data = json.loads(tree.to_json())
    assert len(data["edges"]) == len(tree.edges) > 0
    assert data["layer_sizes"] == [12, 5, 3]
    assert data["nodes"][0]["position"] == list(tree.nodes[0].position)


def test_a_model_gives_a_tree():
    model = create_model("dr_capsnet_tiny_test").eval()
    output = model(torch.rand(2, 1, 20, 20), return_routing=True)
    tree = parse_tree(output.layers, sample=1, grid=(2, 2, 2))
    assert tree.chosen == output.activations[1].argmax()
    assert tree.layer_sizes == (8, 4)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"sample": 2}, "batch of 2"),
        ({"grid": (2, 2, 2)}, "does not hold 12"),
        ({"chosen": 3}, r"0\.\.2"),
        ({"top": 0}, "at least 1"),
    ],
)
def test_wrong_settings_are_answered(settings, message):
    with pytest.raises(UserError, match=message):
        parse_tree(random_layers(0, [12, 3]), **settings)


@pytest.mark.compile  # the run-time type checks would answer first
def test_an_output_in_place_of_its_layers_is_told_where_they_are():
    output = create_model("dr_capsnet_tiny_test")(torch.rand(1, 1, 20, 20), return_routing=True)
    with pytest.raises(UserError, match=r"parse_tree\(output.layers\); got a Tensor"):
        parse_tree(output)


def test_activations_that_are_not_finite_have_no_tree():
    (layer,) = random_layers(0, [12, 3])
    broken = layer.routed._replace(activations=torch.full_like(layer.routed.activations, float("nan")))
    with pytest.raises(UserError, match="not finite: check the images and the weights"):
        parse_tree((layer._replace(routed=broken),))


def test_layers_that_give_no_tree_are_answered():
    first, last = random_layers(0, [12, 5, 3])
    with pytest.raises(UserError, match="return_routing=True"):
        parse_tree(())
    with pytest.raises(UserError, match="kept no couplings"):
        parse_tree((first._replace(routed=first.routed._replace(coupling=None)),))
    with pytest.raises(UserError, match="consecutive"):
        parse_tree((last, first))
    grid = Routed(torch.zeros(1, 2, 2, 3, 4), torch.zeros(1, 2, 2, 3), torch.zeros(1, 2, 2, 9, 3))
    with pytest.raises(UserError, match="convolutional"):
        parse_tree((LayerTrace(first.children, grid),))


def test_a_quantized_equal_share_is_not_above_the_threshold():
    coupling = quantize(torch.full((1, 3, 10), 0.1), 11)  # 0.1 in single precision is more than 1/10
    coupling[0, 1, 4] = 0.2
    routed = Routed(torch.zeros(1, 10, 2), torch.zeros(1, 10), coupling)
    trace = LayerTrace(Capsules(torch.zeros(1, 3, 2), torch.ones(1, 3)), routed)
    tree = parse_tree((trace,), chosen=4)
    assert [(edge.child, edge.parent) for edge in tree.edges] == [(1, 4)]
