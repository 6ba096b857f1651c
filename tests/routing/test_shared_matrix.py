import torch
from torch.testing import assert_close

from torchcaps.core import Capsules
from torchcaps.layers import ConvCaps2d, FcCaps
from torchcaps.routing import dynamic_routing, even_routing

from routing.contract import OUT_CAPS, RoutingContract, draw
from routing.test_dynamic import squashed


class TestSharedMatrix(RoutingContract):
    name = "shared_matrix"
    reads_out = False
    one_round = {}

    def closed_form(self, routing, votes, activations):
        return squashed(votes.sum(1) / OUT_CAPS + routing.bias)


class TestWithoutBias(TestSharedMatrix):
    settings = {"bias": False}

    def closed_form(self, routing, votes, activations):
        return squashed(votes.sum(1) / OUT_CAPS)


def test_it_is_the_first_round_of_dynamic_routing():
    votes, ones = draw(2, 6, 4, 5), torch.ones(2, 6, dtype=torch.float64)
    first = dynamic_routing(votes, ones, iterations=1)
    for mine, theirs in zip(even_routing(votes, ones), first, strict=True):
        assert_close(mine, theirs)


def test_layers_make_one_set_of_matrices():
    assert FcCaps(12, 4, 3, 5, routing="shared_matrix").weight.shape == (1, 3, 4, 5)
    assert ConvCaps2d(2, 4, 3, 5, kernel_size=3, routing="shared_matrix").weight.shape == (9, 3, 4, 5)
    assert FcCaps(12, 4, 3, 5, routing="shared_matrix", matrices=12).weight.shape == (12, 3, 4, 5)


def test_children_are_interchangeable():
    """The property the paper is after: moving a part to another capsule changes nothing."""
    layer = FcCaps(6, 4, 3, 5, routing="shared_matrix")
    poses, order = torch.randn(2, 6, 3), torch.tensor([3, 0, 5, 1, 4, 2])
    ones = torch.ones(2, 6)
    assert_close(layer(Capsules(poses, ones)).poses, layer(Capsules(poses[:, order], ones)).poses)
