import pytest
import torch
from torch import nn

from torchcaps.core import Capsules, Routed, UserError
from torchcaps.layers import FcCaps
from torchcaps.routing import (
    DynamicRouting,
    Routing,
    RoutingShape,
    build_routing,
    create_routing,
    describe_routing,
    keep_float32,
    list_routings,
)

from refusal import REFUSED

SHAPE = RoutingShape(6, 4, 5)


def mean_routing(votes, activations):
    poses = votes.mean(-3)
    return Routed(poses, poses.norm(dim=-1), votes.new_full(votes.shape[:-1], 1 / votes.shape[-2]))


def test_a_function_is_a_routing():
    assert isinstance(mean_routing, Routing)
    layer = FcCaps(6, 4, 3, 5, routing=mean_routing)
    routed = layer(Capsules(torch.randn(2, 6, 3), torch.ones(2, 6)))
    assert routed.poses.shape == (2, 4, 5)


def test_a_mapping_names_the_routing_and_its_settings():
    assert build_routing({"name": "dynamic", "iterations": 7}, SHAPE).iterations == 7


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("dynamc", "did you mean dynamic"),
        ({"name": "dynamic", "iteration": 2}, "did you mean iterations"),
        ({"iterations": 2}, "needs a 'name'"),
        (DynamicRouting, "give an object of it, or register it"),
        (lambda votes: votes, "called with votes and activations, .* <lambda> does not take these two"),
        (nn.Linear(3, 3), "Linear does not take these two"),
    ],
)
def test_mistakes_are_answered(spec, message):
    with pytest.raises(REFUSED, match=message):
        build_routing(spec, SHAPE)


def test_a_number_is_no_routing():
    with pytest.raises(REFUSED):
        build_routing(3, SHAPE)


def test_every_routing_is_listed_and_built():
    thesis = {"dynamic", "em", "scaled_distance", "self_attention"}
    beyond = {"self_routing", "inverted_attention", "variational_bayes", "shared_matrix", "slot_attention"}
    assert thesis | beyond <= set(list_routings())
    for name in list_routings():
        assert isinstance(create_routing(name, SHAPE), Routing)


def test_a_routing_is_described_by_its_settings_and_a_sentence():
    told = describe_routing("scaled_distance")
    assert told["name"] == "scaled_distance"
    assert told["settings"] == "iterations=3, scope='sample', gradient='full', bias=True"
    assert told["about"].startswith("Scaled-distance agreement")
    assert describe_routing("self_routing")["settings"] == ""


@pytest.mark.parametrize("name", list_routings())
def test_every_routing_counts_its_work(name):
    small, large = (create_routing(name, shape).cost(shape) for shape in (SHAPE, RoutingShape(12, 4, 5)))
    assert 0 < small.flops < large.flops
    assert small.flops == 2 * small.multiply_adds + small.elementwise


@pytest.mark.parametrize("name", list_routings())
def test_a_routing_prints_how_often_it_iterates(name):
    routing = create_routing(name, RoutingShape(6, 3, 4))
    if not hasattr(routing, "iterations"):
        return
    routing.iterations = 7  # as routing annealing does
    assert "iterations=7" in repr(routing)


def test_settings_of_a_routing_kept_in_float32_may_be_given_by_place():
    @keep_float32
    def scaled_mean(votes, activations, scale, offset=0.0):
        assert votes.dtype == torch.float32
        return mean_routing(scale * votes + offset, activations)

    votes, activations = torch.randn(2, *SHAPE).bfloat16(), torch.ones(2, 6).bfloat16()
    by_name = scaled_mean(votes, activations, scale=2.0, offset=1.0)
    torch.testing.assert_close(scaled_mean(votes, activations, 2.0, offset=1.0), by_name)


@pytest.mark.compile  # the run-time type checks would answer first
@pytest.mark.parametrize("name", list_routings())
def test_whole_numbers_are_no_votes(name):
    routing = create_routing(name, SHAPE)
    with pytest.raises(UserError, match=r"real numbers .* got torch.int64; votes.float\(\) gives them"):
        routing(torch.ones(2, *SHAPE, dtype=torch.int64), torch.ones(2, 6))
