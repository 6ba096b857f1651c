import pytest
import torch

from torchcaps.core import Capsules
from torchcaps.layers import CoordinateAddition, FcCaps
from torchcaps.routing import (
    DynamicRouting,
    EMRouting,
    FusedRouting,
    FusedStoredRouting,
    RoutesInParts,
    RoutingShape,
    create_routing,
    list_routings,
)

SHAPE = RoutingShape(6, 4, 5)


@pytest.mark.parametrize(
    ("protocol", "names"),
    [
        (FusedRouting, {"dynamic", "em", "scaled_distance", "self_attention"}),
        (FusedStoredRouting, {"dynamic"}),
        (RoutesInParts, {"scaled_distance"}),
    ],
)
def test_these_routings_have_kernels_and_parts(protocol, names):
    assert {name for name in list_routings() if isinstance(create_routing(name, SHAPE), protocol)} == names


def test_coordinates_leave_the_question_to_the_routing_inside():
    def reason(routing):
        layer = FcCaps(6, 4, 3, 5, routing=CoordinateAddition(routing, torch.rand(6, 2), (0, 1), pose=5))
        return layer.fallback_reason(children, return_coupling=False)

    children = Capsules(torch.rand(2, 6, 3), torch.rand(2, 6))
    assert "with 6 children" in reason(EMRouting(SHAPE))
    assert "no offsets" in reason(DynamicRouting(SHAPE))
    assert "no fused kernel for function" in reason(lambda votes, activations: None)
    watched = EMRouting(SHAPE)
    watched.register_forward_hook(lambda *_: None)
    assert "hook" in reason(watched)
