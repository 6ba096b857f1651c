import pytest
import torch

from torchcaps.core import Capsules, Routed, UserError
from torchcaps.layers import FcCaps
from torchcaps.routing import Routing, RoutingShape, build_routing, create_routing, list_routings

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
        (3, "must be a name, a mapping or a callable"),
    ],
)
def test_mistakes_are_answered(spec, message):
    with pytest.raises(UserError, match=message):
        build_routing(spec, SHAPE)


def test_every_routing_is_listed_and_built():
    assert {"dynamic", "em", "scaled_distance", "self_attention"} <= set(list_routings())
    for name in list_routings():
        assert isinstance(create_routing(name, SHAPE), Routing)
