import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.testing import assert_close

from torchcaps.core import Capsules, UserError
from torchcaps.core.squash import squash, squash_exponential
from torchcaps.core.types import LayerTrace
from torchcaps.layers import FcCaps, SelectedFcCaps
from torchcaps.models import create_model
from torchcaps.parse import Contributions, contribution_map, contribution_obstacle, contributions, quantized

ROUTINGS = {
    "dynamic": {"name": "dynamic"},
    "last": {"name": "dynamic", "gradient": "last", "bias": False},
    "leaky": {"name": "dynamic", "leaky": True, "iterations": 2},
    "attention": {"name": "self_attention"},
    "without prior": {"name": "self_attention", "prior": False},
    "distance": {"name": "scaled_distance"},
    "distance without bias": {"name": "scaled_distance", "bias": False},
}
sizes = st.integers(1, 4)


def make_layer(seed, routing, *, in_caps=6, out_caps=3, matrices=None, pose_rows=1):
    torch.manual_seed(seed)
    layer = FcCaps(
        *(in_caps, out_caps, 2 * pose_rows, 3 * pose_rows),
        routing=ROUTINGS[routing],
        matrices=matrices,
        pose_rows=pose_rows,
        init_std=1.0,
        backend="torch",
    ).double()
    for parameter in layer.routing.parameters():  # a bias or a prior that is not the same everywhere
        parameter.data.normal_(std=0.3)
    return layer


def look(layer, batch, in_caps, is_quantized=False):
    poses = torch.randn(batch, in_caps, layer.in_pose, dtype=torch.float64)
    children = Capsules(poses, torch.rand(batch, in_caps, dtype=torch.float64))
    with torch.no_grad():
        if not is_quantized:
            return LayerTrace(children, layer(children))
        with quantized(layer, 11):
            return LayerTrace(children, layer(children))


def summands_by_loops(layer, trace, sample, parent):
    """What each child adds to one parent of one sample, from the parameters of the layer."""
    found = []
    for child in range(layer.in_caps):
        matrix = layer.weight.detach()[child % len(layer.weight), :, parent]
        vote = (trace.children.poses[sample, child].view(layer.pose_rows, -1) @ matrix).flatten()
        if type(layer.routing).__name__ == "ScaledDistanceRouting":
            longest = trace.children.activations[sample, child]
            vote = vote * min(1.0, float(longest / (vote @ vote + 1e-12).sqrt()))
        found.append(trace.routed.coupling[sample, child, parent] * vote)
    return torch.stack(found)


@settings(max_examples=40, deadline=None)
@given(
    st.integers(0, 2**31),
    st.sampled_from(sorted(ROUTINGS)),
    st.tuples(sizes, sizes, st.integers(2, 4), st.integers(1, 2)),
    st.booleans(),
    st.booleans(),
)
def test_parts_and_bias_add_up_to_the_length_of_the_class_capsule(
    seed, routing, shape, is_shared, is_quantized
):
    batch, groups, out_caps, pose_rows = shape
    in_caps = 2 * groups
    layer = make_layer(
        *(seed, routing),
        in_caps=in_caps,
        out_caps=out_caps,
        matrices=2 if is_shared else None,
        pose_rows=pose_rows,
    )
    trace = look(layer, batch, in_caps, is_quantized)
    chosen = torch.randint(out_caps, (batch,))
    found = contributions(layer, trace, chosen)
    bias = getattr(layer.routing, "bias", None)
    shorten = squash_exponential if "self" in ROUTINGS[routing]["name"] else squash
    for sample, parent in enumerate(chosen.tolist()):
        summands = summands_by_loops(layer, trace, sample, parent)
        offset = torch.zeros_like(summands[0]) if bias is None else bias[parent].detach()
        whole = summands.sum(0) + offset
        length = whole.norm()
        along = whole / length if length > 0 else whole  # couplings rounded to zero leave nothing
        assert_close(found.length[sample], length, atol=1e-9, rtol=0)
        assert_close(found.parts[sample], summands @ along, atol=1e-9, rtol=0)
        assert_close(found.bias[sample], offset @ along, atol=1e-9, rtol=0)
        straight = torch.nn.functional.pad(length.view(1, 1), (0, 1))
        assert_close(shorten(straight).norm(), trace.routed.activations[sample, parent], atol=1e-9, rtol=0)


@pytest.mark.parametrize("routing", ["dynamic", "distance", "without prior"])
def test_the_order_of_children_moves_their_parts_along(routing):
    layer = make_layer(0, routing)
    trace, chosen = look(layer, 4, 6), torch.tensor([0, 1, 2, 1])
    before = contributions(layer, trace, chosen)
    order = torch.randperm(6)
    layer.weight.data = layer.weight.data[order]
    children = Capsules(*(field[:, order] for field in trace.children))
    with torch.no_grad():
        after = contributions(layer, LayerTrace(children, layer(children)), chosen)
    assert_close(after.parts, before.parts[:, order])
    assert_close(after.bias, before.bias)


def test_a_few_images_at_a_time_give_the_same(monkeypatch):
    layer = make_layer(0, "dynamic")
    trace, chosen = look(layer, 7, 6), torch.tensor([0, 1, 2, 1, 1, 0, 1])
    whole = contributions(layer, trace, chosen)
    monkeypatch.setattr("torchcaps.parse.contribution._VOTES_AT_ONCE", 1)
    assert_close(contributions(layer, trace, chosen), whole)


def test_what_pulls_the_other_way_is_counted_as_a_share():
    found = Contributions(torch.tensor([[3.0, -1.0, -0.5]]), torch.tensor([0.5]))
    assert found.length.tolist() == [2.0]
    assert found.against.tolist() == [0.75]
    assert found.in_favour.tolist() == [1.5]
    assert torch.equal(found.shares[0], found.parts[0] / found.length[0])


def test_children_without_a_vote_contribute_nothing():
    torch.manual_seed(0)
    layer = SelectedFcCaps(6, 3, 2, 4, voters=2).double()
    layer.voters = torch.tensor([4, 1])
    trace = look(layer, 3, 6)
    found = contributions(layer, trace, torch.tensor([0, 2, 2]))
    assert (found.parts != 0).any(0).tolist() == [False, True, False, False, True, False]
    along = torch.nn.functional.pad(found.length.unsqueeze(1), (0, 1))
    lengths = trace.routed.activations[[0, 1, 2], [0, 2, 2]]
    assert_close(squash(along).norm(dim=1), lengths)


def test_a_capsule_without_length_has_no_parts():
    layer = make_layer(0, "last")
    layer.weight.data.zero_()
    found = contributions(layer, look(layer, 1, 6), torch.tensor([0]))
    assert not found.parts.any()
    assert found.against.tolist() == [0.0]


@pytest.mark.parametrize("family", ["dr_capsnet", "deepcaps", "effconv_capsnet", "parse_capsnet"])
@pytest.mark.parametrize("levels", [None, 11])
def test_the_parts_of_whole_networks_give_their_activations(family, levels):
    torch.manual_seed(0)
    network = create_model(f"{family}_tiny_test").eval().double()
    images = torch.rand(2, *network.image_shape, dtype=torch.float64)
    with torch.no_grad():
        if levels is None:
            output = network(images, return_routing=True)
        else:
            with quantized(network, levels):
                output = network(images, return_routing=True)
    chosen = output.activations.argmax(1)
    found = contributions(network, output.layers[-1], chosen)
    along = torch.nn.functional.pad(found.length.unsqueeze(1), (0, 1))
    assert_close(squash(along).norm(dim=1), output.activations.amax(1), atol=1e-9, rtol=0)


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ("em_capsnet_tiny_test", "CoordinateAddition over EMRouting, which does not make them sums"),
        ("conv_baseline_tiny_test", "no fully connected"),
    ],
)
def test_what_does_not_split_is_refused(model, words):
    network = create_model(model)
    assert words in contribution_obstacle(network)
    with pytest.raises(UserError, match=words):
        contributions(network, look(make_layer(0, "dynamic"), 1, 6), torch.tensor([0]))


def test_a_function_as_routing_is_refused_by_its_name():
    def somehow(votes, activations):
        pytest.fail("it is asked for its name alone")

    assert "somehow" in contribution_obstacle(FcCaps(4, 2, 2, 2, routing=somehow))


@pytest.mark.parametrize(
    ("chosen", "words"), [([3], r"0\.\.2"), ([-1], r"0\.\.2"), ([0, 1], "a class for each image")]
)
def test_classes_that_do_not_fit_are_refused(chosen, words):
    layer = make_layer(0, "dynamic")
    with pytest.raises(UserError, match=words):
        contributions(layer, look(layer, 1, 6), torch.tensor(chosen))


def test_a_trace_of_another_layer_or_without_couplings_is_refused():
    layer = make_layer(0, "dynamic")
    other = look(make_layer(0, "dynamic", in_caps=8), 1, 8)
    with pytest.raises(UserError, match="last layer"):
        contributions(layer, other, torch.tensor([0]))
    bare = LayerTrace(other.children, other.routed._replace(coupling=None))
    with pytest.raises(UserError, match="return_routing"):
        contributions(layer, bare, torch.tensor([0]))


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**31), st.tuples(sizes, sizes, sizes))
def test_a_map_is_the_sum_of_what_speaks_for_the_class(seed, grid):
    torch.manual_seed(seed)
    height, width, types = grid
    parts = torch.randn(2, height * width * types)
    expected = torch.zeros(2, height, width)
    for child in range(parts.shape[1]):
        row, column = divmod(child // types, width)
        expected[:, row, column] += parts[:, child].clamp(min=0)
    assert_close(contribution_map(parts, grid), expected)
    with pytest.raises(UserError, match="does not hold"):
        contribution_map(parts, (height, width, types + 1))


def test_where_nothing_speaks_against_a_class_it_is_plain_zero():
    against = Contributions(torch.ones(1, 3), torch.zeros(1)).against
    assert math.copysign(1, float(against)) == 1
    assert f"{float(against):.0%}" == "0%"
