import pytest
import torch
from torch.testing import assert_close

from torchcaps.core import Capsules, UserError
from torchcaps.layers import CoordinateAddition, FcCaps
from torchcaps.routing import EMRouting, RoutingShape

SHAPE = RoutingShape(6, 3, 16)


def test_row_and_column_of_a_child_are_added_to_the_two_components_of_all_its_votes():
    votes, activations = torch.randn(2, *SHAPE), torch.rand(2, 6)
    coordinates = torch.rand(6, 2)
    routing = EMRouting(SHAPE)
    shifted = votes.clone()
    for child in range(6):
        shifted[:, child, :, 3] += coordinates[child, 0]
        shifted[:, child, :, 11] += coordinates[child, 1]
    found = CoordinateAddition(routing, coordinates, (3, 11))(votes, activations)
    assert_close(found.poses, routing(shifted, activations).poses)


def test_the_addition_alone_is_counted_and_nothing_of_it_is_stored():
    layer = CoordinateAddition(EMRouting(SHAPE), torch.rand(6, 2), (0, 1))
    assert layer.cost(SHAPE) == (0, 6 * 3 * 16)
    assert not any("offset" in name for name in layer.state_dict())


def test_coordinates_without_memory_are_not_read_by_a_kernel():
    with torch.device("meta"):
        routing = CoordinateAddition(EMRouting(SHAPE), torch.rand(6, 2), (0, 1))
    routing.routing = EMRouting(SHAPE)
    layer = FcCaps(6, 3, 16, 16, pose_rows=4, routing=routing, backend="fused")
    children = Capsules(torch.randn(2, 6, 16), torch.rand(2, 6))
    with pytest.raises(UserError, match="the coordinates are on meta, the poses on cpu"):
        layer(children, return_coupling=False)
