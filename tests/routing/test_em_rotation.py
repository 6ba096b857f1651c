import pytest
import torch
from torch.testing import assert_close

from torchcaps.core.rotation import hamilton, rotation_angle
from torchcaps.routing import create_routing
from torchcaps.routing.api import RoutingShape

from routing.contract import RoutingContract, draw


def eigenvector(votes, weights):
    """Markley's mean by an eigensolver, votes (i, d) and weights (i)."""
    return torch.linalg.eigh(torch.einsum("i,id,ie->de", weights, votes, votes)).eigenvectors[:, -1]


class TestHemisphere(RoutingContract):
    name = "em_rotation"
    largest = 1e12

    def closed_form(self, routing, votes, activations):
        poses = torch.zeros(votes.shape[0], *votes.shape[2:], dtype=votes.dtype)
        for b in range(len(votes)):
            for o in range(votes.shape[2]):
                axis = routing(votes, activations).poses[b, o]  # its sign alone is taken over
                near = eigenvector(votes[b, :, o], activations[b])
                near = near * (near @ axis).sign()
                signed = votes[b, :, o] * (votes[b, :, o] @ near).sign()[:, None]
                poses[b, o] = (activations[b] @ signed) / (activations[b].sum() + 4e-7)
        return poses


class TestMarkley(RoutingContract):
    name = "em_rotation"
    largest = 1e12
    settings = {"average": "markley"}

    def closed_form(self, routing, votes, activations):
        found = routing(votes, activations).poses
        expected = torch.stack(
            [
                torch.stack([eigenvector(v[:, o], a) for o in range(votes.shape[2])])
                for v, a in zip(votes, activations, strict=True)
            ]
        )
        return expected * (expected * found).sum(-1, keepdim=True).sign()


@pytest.fixture
def quaternions():
    return torch.nn.functional.normalize(draw(2, 30, 3, 4), dim=-1)


@pytest.mark.parametrize("average", ["hemisphere", "markley"])
def test_the_signs_of_votes_do_not_matter(quaternions, average):
    routing = create_routing("em_rotation", RoutingShape(30, 3, 4), average=average).double()
    activations = draw(2, 30, seed=1).sigmoid()
    flipped = quaternions * draw(2, 30, 3, 1, seed=2).sign()
    ours, theirs = routing(quaternions, activations), routing(flipped, activations)
    assert_close(ours.activations, theirs.activations)
    assert_close(ours.coupling, theirs.coupling)
    a, b = (torch.nn.functional.normalize(each.poses, dim=-1) for each in (ours, theirs))
    assert rotation_angle(a, b).max() < 1e-5


def test_plain_em_lets_votes_of_both_signs_cancel():
    agreed = torch.tensor([0.5, 0.5, 0.5, 0.5], dtype=torch.float64)
    signs = torch.tensor([1.0, -1.0], dtype=torch.float64).repeat(5)
    votes, activations = (signs[:, None] * agreed).view(1, 10, 1, 4), torch.ones(1, 10, dtype=torch.float64)
    shape = RoutingShape(10, 1, 4)
    plain = create_routing("em", shape).double()(votes, activations).poses
    aligned = create_routing("em_rotation", shape).double()(votes, activations).poses
    assert plain.norm() < 1e-6
    assert aligned.norm().item() == pytest.approx(1)


@pytest.mark.parametrize("average", ["hemisphere", "markley"])
def test_parents_turn_with_their_votes(quaternions, average):
    routing = create_routing("em_rotation", RoutingShape(30, 3, 4), average=average).double()
    activations = draw(2, 30, seed=1).sigmoid()
    turn = torch.nn.functional.normalize(draw(4, seed=5), dim=0)
    still = routing(quaternions, activations)
    turned = routing(hamilton(turn, quaternions), activations)
    assert_close(turned.activations, still.activations)
    expected, found = hamilton(turn, still.poses), turned.poses
    sign = (expected * found).sum(-1, keepdim=True).sign()
    assert_close(found * sign, expected)
