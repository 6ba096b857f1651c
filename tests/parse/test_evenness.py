from statistics import median

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from parse.traces import random_layers

from torchcaps.parse import distance_from_even, measure_evenness, parse_tree, say_needless


def couplings(*rows):
    return torch.tensor([rows])


def test_an_even_split_is_hardly_routed():
    found = measure_evenness(torch.full((2, 30, 10), 0.1), torch.tensor([3, 4]))
    assert (found.parents, found.doubled, found.decided) == (10, 0, 0)
    assert found.largest == found.to_chosen == pytest.approx(0.1)
    assert found.hardly_routes


def test_children_that_prefer_a_parent_are_counted():
    coupling = couplings([0.25, 0.25, 0.25, 0.25], [0.4, 0.2, 0.2, 0.2], [0.1, 0.7, 0.1, 0.1], [0.0, 0, 0, 1])
    found = measure_evenness(coupling, torch.tensor([0]))
    assert (found.decided, found.doubled) == (0.75, 0.5)  # above 0.375 and above 0.5
    assert found.largest == pytest.approx(0.55)  # between 0.4 and 0.7
    assert found.to_chosen == pytest.approx(0.175)  # between 0.1 and 0.25
    assert not found.hardly_routes


@pytest.mark.parametrize(("decided", "hardly"), [(4, True), (5, False)])
def test_less_than_five_percent_is_hardly_routing(decided, hardly):
    coupling = torch.full((1, 100, 2), 0.5)
    coupling[0, :decided] = torch.tensor([0.8, 0.2])
    assert measure_evenness(coupling).hardly_routes == hardly


def test_exactly_twice_the_even_share_is_not_more():
    coupling = couplings([0.2] + [0.8 / 9] * 9)
    assert measure_evenness(coupling).doubled == 0
    assert measure_evenness(coupling).decided == 1


def test_a_constant_added_to_all_couplings_is_no_preference():
    shares = measure_evenness(torch.full((1, 4, 10), 0.1) + 0.5)
    assert shares.hardly_routes
    assert distance_from_even(torch.full((1, 4, 10), 0.1) + 0.5) == 0
    assert measure_evenness(torch.zeros(1, 4, 10)).hardly_routes  # gives nothing to any


def test_weak_couplings_decide_nothing_however_they_compare():
    """As shares of what their child gives, all of them would go to one parent."""
    weak, strong = [0.004, 0.0, 0.0, 0.0], [0.4, 0.0, 0.0, 0.0]
    assert measure_evenness(couplings(*[weak] * 30)).hardly_routes
    assert measure_evenness(couplings(*[weak] * 3, strong)).decided == 0.25
    assert distance_from_even(couplings(weak)) == pytest.approx(0.004)


def test_negative_couplings_count_as_they_are():
    found = measure_evenness(couplings([-0.3, -0.3, -0.3, 0.01], [-0.3, -0.3, -0.3, -0.29]))
    assert (found.decided, found.doubled) == (0.5, 0)  # 0.2325 and 0.0075 above their means; shares are 0.25
    assert found.mean == pytest.approx(-0.26)
    assert not found.is_split


def test_couplings_that_are_no_split_are_said_to_be_none():
    assert measure_evenness(couplings([0.25, 0.75], [1.0, 0.0])).is_split
    for row in ([0.4, 0.1], [0.9, 0.3], [1.2, -0.2]):
        assert not measure_evenness(couplings([0.5, 0.5], row)).is_split


def test_one_parent_leaves_no_choice():
    assert measure_evenness(torch.ones(1, 4, 1)).hardly_routes


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**31), st.floats(0, 4), st.integers(2, 8))
def test_it_is_what_counting_one_by_one_gives(seed, sharpness, parents):
    (layer,) = random_layers(seed, [25, parents], sharpness=sharpness)
    found = measure_evenness(layer.routed.coupling)
    largest = [max(row) for image in layer.routed.coupling.double().tolist() for row in image]
    assert found.doubled == pytest.approx(sum(value > 2.000002 / parents for value in largest) / 50)
    assert found.decided == pytest.approx(sum(value > 1.5000015 / parents for value in largest) / 50)
    assert found.largest == pytest.approx(median(largest))


def test_a_tree_carries_the_evenness_of_every_layer():
    layers = random_layers(0, [12, 5, 3])
    tree = parse_tree(layers, sample=1)
    hidden, last = tree.evenness
    assert hidden == measure_evenness(layers[0].routed.coupling[1:])
    assert last == measure_evenness(layers[1].routed.coupling[1:], torch.tensor([tree.chosen]))


def test_a_quantized_tree_tells_what_the_network_itself_said():
    layers, own = random_layers(0, [12, 5, 3]), random_layers(1, [12, 5, 3])
    tree, plain = parse_tree(layers, unquantized=own), parse_tree(layers)
    assert tree.is_quantized
    assert not plain.is_quantized
    assert (tree.edges, tree.chosen) == (plain.edges, plain.chosen)
    assert tree.class_activations == pytest.approx(own[-1].routed.activations[0].tolist())
    assert tree.nodes[-1].activation == pytest.approx(float(own[-1].routed.activations[0, tree.chosen]))
    assert tree.nodes[:-1] == plain.nodes[:-1]
    assert tree.evenness[0] == measure_evenness(own[0].routed.coupling[:1])


def test_the_distance_from_an_even_split_runs_from_none_to_one():
    even = torch.full((1, 3, 4), 0.25)
    decided = torch.eye(4)[None, :3]
    assert distance_from_even(even) == 0
    assert distance_from_even(decided) == pytest.approx(1)
    # half of a child's couplings on one of four parents: (0.5 - 0.25 + 3 * (0.25 - 1 / 6)) / 2 / 0.75 = 1 / 3
    half = torch.tensor([[[0.5, 1 / 6, 1 / 6, 1 / 6]]])
    assert distance_from_even(half) == pytest.approx(1 / 3, abs=1e-6)
    assert distance_from_even(torch.ones(1, 3, 1)) == 0


def test_trees_are_called_no_reason_where_even_couplings_are_as_accurate():
    assert "do not say why" in say_needless(0.960, even_accuracy=0.962, images=10_000)
    assert "do not say why" in say_needless(0.960, even_accuracy=0.955, images=10_000)
    assert say_needless(0.960, even_accuracy=0.9549, images=10_000) == ""
    assert "do not say why" in say_needless(0.60, even_accuracy=0.55, images=100)  # five images may be chance
    assert say_needless(0.60, even_accuracy=0.54, images=100) == ""
