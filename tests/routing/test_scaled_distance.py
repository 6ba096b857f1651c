import math

import pytest
import torch
from torch.testing import assert_close

from torchcaps.core import UserError
from torchcaps.routing import RoutingShape, create_routing, scaled_distance_routing
from torchcaps.routing.scaled_distance import limit_votes

from refusal import REFUSED
from routing.contract import OUT_CAPS, RoutingContract, draw
from routing.test_dynamic import squashed


class TestScaledDistance(RoutingContract):
    name = "scaled_distance"
    fewest_parents = 2
    # the scale of the distances is a constant to the gradient, which finite differences cannot know
    settings = {"iterations": 1}

    def closed_form(self, routing, votes, activations):
        length = votes.norm(dim=-1, keepdim=True)
        limited = votes / length * torch.minimum(length, activations[..., None, None])
        return squashed(limited.sum(1) / OUT_CAPS + routing.bias)


class TestThreeRounds(TestScaledDistance):
    settings = {"iterations": 3}
    test_gradients_are_those_of_finite_differences = None


@pytest.mark.parametrize("scope", ["sample", "batch"])
def test_the_loop_of_the_paper_gives_the_same_result(scope):
    """Logits are assigned in each round: only from the third on does that differ from summing them."""
    votes, a, bias = draw(2, 5, 3, 4), draw(2, 5, seed=1).sigmoid(), draw(3, 4, seed=2)
    u = votes * torch.minimum(a[..., None, None] / votes.norm(dim=-1, keepdim=True), torch.ones(()))
    b = torch.zeros(2, 5, 3, dtype=torch.float64)
    for _ in range(4):
        c = torch.exp(b) / torch.exp(b).sum(2, keepdim=True)
        v = squashed((c[..., None] * u).sum(1) + bias)
        d = (v[:, None] - u).norm(dim=-1)
        d_o = d.mean() if scope == "batch" else torch.stack([d[0].mean(), d[1].mean()]).view(2, 1, 1)
        t = (math.log(0.9 * 2) - math.log(0.1)) / (0.5 * d_o - d_o)
        b = t * d
    routed = scaled_distance_routing(votes, a, iterations=4, scope=scope, bias=bias)
    assert_close(routed.poses, v)
    assert_close(routed.coupling, c)


@pytest.mark.parametrize("scope", ["sample", "batch"])
def test_the_last_gradient_holds_the_couplings_constant(scope):
    votes, bias = draw(2, 6, 4, 5).requires_grad_(), draw(4, 5, seed=3).requires_grad_()
    a = torch.full((2, 6), 0.7, dtype=torch.float64)
    routed = scaled_distance_routing(votes, a, scope=scope, gradient="last", bias=bias)
    got = torch.autograd.grad(routed.poses.sum(), [votes, bias])
    limited = votes * torch.minimum(a[..., None, None] / votes.norm(dim=-1, keepdim=True), torch.ones(()))
    pooled = torch.einsum("bio,biod->bod", routed.coupling.detach(), limited) + bias
    assert_close(got, torch.autograd.grad(squashed(pooled).sum(), [votes, bias]))
    full = scaled_distance_routing(votes, a, scope=scope, bias=bias)
    assert_close(routed.poses, full.poses)
    assert not torch.allclose(got[0], torch.autograd.grad(full.poses.sum(), votes)[0])


def test_the_gradient_treats_the_scale_as_a_constant():
    votes, a = draw(2, 6, 4, 5), torch.full((2, 6), 0.7, dtype=torch.float64)

    def poses(votes, scale):
        limited = limit_votes(votes, a)
        first = squashed(limited.mean(1) * 6 / 4)
        distance = (first[:, None] - limited).norm(dim=-1)
        found = -math.log(9 * 3) / (0.5 * distance.mean((1, 2), keepdim=True) + 1e-12)
        coupling = (distance * (found if scale is None else scale)).softmax(-1)
        return squashed(torch.einsum("bio,biod->bod", coupling, limited)), found

    expected, scale = poses(votes, None)
    votes.requires_grad_()
    routed = scaled_distance_routing(votes, a, iterations=2)
    assert_close(routed.poses, expected)
    mine = torch.autograd.grad(routed.poses.sum(), votes)[0]
    theirs = torch.autograd.grad(poses(votes, scale)[0].sum(), votes)[0]
    assert_close(mine, theirs)


def test_a_parent_at_half_the_mean_distance_gets_nine_tenths():
    sharpness = math.log(0.9 * 3) - math.log(0.1)
    mean = 2.0
    logits = torch.tensor([1.0, 2.0, 2.0, 2.0]) * (-sharpness / (0.5 * mean))
    assert_close(logits.softmax(0)[0], torch.tensor(0.9))


def test_votes_are_no_longer_than_their_child():
    votes, a = 10 * draw(2, 6, 4, 5), draw(2, 6, seed=1).sigmoid()
    limited = limit_votes(votes, a).norm(dim=-1)
    assert_close(limited, a[..., None].expand_as(limited))
    short = 1e-3 * votes / votes.norm(dim=-1, keepdim=True)
    assert_close(limit_votes(short, a), short)


def test_batch_scope_takes_one_mean_over_all_samples():
    votes, a = draw(2, 6, 4, 5), torch.ones(2, 6, dtype=torch.float64)
    alone = scaled_distance_routing(votes[:1], a[:1], scope="batch").poses
    assert_close(alone, scaled_distance_routing(votes[:1], a[:1], scope="sample").poses)
    assert (scaled_distance_routing(votes, a, scope="batch").poses[:1] - alone).abs().max() > 1e-6


def test_the_bias_starts_at_a_tenth():
    assert_close(
        create_routing("scaled_distance", RoutingShape(6, 2, 5)).bias.detach(), torch.full((2, 5), 0.1)
    )


def test_impossible_settings_are_refused():
    with pytest.raises(UserError, match="at least 2 output capsules"):
        create_routing("scaled_distance", RoutingShape(6, 1, 5))
    with pytest.raises(REFUSED, match="scope"):
        create_routing("scaled_distance", RoutingShape(6, 2, 5), scope="all")


def test_the_function_refuses_what_the_module_refuses():
    with pytest.raises(REFUSED, match="scope"):
        scaled_distance_routing(draw(2, 6, 4, 5), draw(2, 6), scope="Batch")
    with pytest.raises(UserError, match="at least 2 output capsules, got 1"):
        scaled_distance_routing(draw(2, 6, 1, 5), draw(2, 6))
