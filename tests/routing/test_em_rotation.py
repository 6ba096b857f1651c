import math

import pytest
import torch
from torch.testing import assert_close

from torchcaps.core import UserError
from torchcaps.core.rotation import hamilton, rotation_angle
from torchcaps.routing import EMRotationRouting, EMRouting, create_routing, em_rotation_routing
from torchcaps.routing.api import RoutingShape
from torchcaps.routing.em import EMCosts, EMSettings

from routing.contract import RoutingContract, draw


def eigenvector(votes, weights):
    """Markley's mean by an eigensolver, votes (i, d) and weights (i)."""
    return torch.linalg.eigh(torch.einsum("i,id,ie->de", weights, votes, votes)).eigenvectors[:, -1]


class TestHemisphere(RoutingContract):
    name = "em_rotation"

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


def slow_em_rotation(votes, activations, beta_a, beta_u, iterations):
    """One sample, one parent at a time, densities not in logs; means by an eigensolver."""
    children, parents, size = votes.shape
    coupling = torch.full((children, parents), 1 / parents, dtype=torch.float64)
    for step in range(iterations):
        temperature = 1 - 0.95 ** (step + 1)
        poses, active, density = [], [], []
        for j in range(parents):
            weights = coupling[:, j] * activations
            mass = float(weights.sum()) + 1e-7
            sides = (votes[:, j] @ eigenvector(votes[:, j], weights)).sign()
            turned = votes[:, j] * sides[:, None]
            mean = (weights[:, None] * turned).sum(0) / mass
            distance = (turned - mean).square().sum(1)
            variance = float((weights * distance).sum()) / mass / size + 0.01
            cost = size * (float(beta_u[j]) + 0.5 * math.log(variance)) * mass * parents / children
            active.append(1 / (1 + math.exp(-temperature * (float(beta_a[j]) - cost))))
            poses.append(mean)
            density.append((-distance / (2 * variance)).exp() * (2 * math.pi * variance) ** (-size / 2))
        used = coupling
        joint = torch.stack(density, 1) * torch.tensor(active, dtype=torch.float64)
        coupling = joint / joint.sum(1, keepdim=True)
    return torch.stack(poses), torch.tensor(active, dtype=torch.float64), used


def test_three_rounds_are_those_of_a_slow_transcription():
    votes, activations = draw(1, 7, 3, 4), draw(1, 7, seed=1).sigmoid()
    votes = votes / votes.norm(dim=-1, keepdim=True)
    costs = EMCosts(draw(3, seed=2), draw(3, seed=3))
    settings = EMSettings(iterations=3, min_variance=0.01)
    routed = em_rotation_routing(votes, activations, costs=costs, settings=settings)
    poses, active, coupling = slow_em_rotation(votes[0], activations[0], *costs, 3)
    assert_close(routed.activations[0], active, rtol=1e-5, atol=1e-7)
    assert_close(routed.coupling[0], coupling, rtol=1e-5, atol=1e-7)
    same_side = (routed.poses[0] * poses).sum(-1, keepdim=True).sign()  # an eigenvector has either
    assert_close(same_side * routed.poses[0], poses, rtol=1e-5, atol=1e-7)


@pytest.mark.compile  # the run-time type checks would answer first
def test_an_average_that_does_not_exist_is_refused():
    with pytest.raises(UserError, match="average must be one of hemisphere, markley, got 'mean'"):
        EMRotationRouting(RoutingShape(6, 3, 4), average="mean")


@pytest.mark.parametrize("kind", [EMRouting, EMRotationRouting])
@pytest.mark.parametrize("value", [-0.1, math.nan])
def test_a_variance_below_zero_is_refused(kind, value):
    with pytest.raises(UserError, match="min_variance must be 0 or more"):
        kind(RoutingShape(6, 3, 4), min_variance=value)
