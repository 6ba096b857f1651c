import pytest
import torch
from torch.testing import assert_close

from torchcaps.routing import DynamicRouting, dynamic_routing
from torchcaps.routing.dynamic import even_split, split_over_parents

from refusal import REFUSED
from routing.contract import IN_CAPS, OUT_CAPS, SHAPE, RoutingContract, draw
from routing.operations import count_operations


def squashed(s):
    n2 = (s * s).sum(-1, keepdim=True)
    return s * n2 / ((1 + n2) * torch.sqrt(n2 + 1e-8))


class TestDynamicRouting(RoutingContract):
    name = "dynamic"

    def closed_form(self, routing, votes, activations):
        return squashed(votes.sum(1) / OUT_CAPS + routing.bias)


class TestWithoutBias(RoutingContract):
    name = "dynamic"
    settings = {"bias": False, "iterations": 2}

    def closed_form(self, routing, votes, activations):
        return squashed(votes.mean(1) * IN_CAPS / OUT_CAPS)


def test_the_loop_of_the_paper_gives_the_same_result():
    votes, bias = draw(1, 5, 3, 4)[0], draw(3, 4, seed=2)
    b = [[0.0] * 3 for _ in range(5)]
    for _ in range(4):
        c = [torch.tensor(row, dtype=torch.float64).softmax(0) for row in b]
        v = [squashed(sum(c[i][j] * votes[i, j] for i in range(5)) + bias[j]) for j in range(3)]
        b = [[b[i][j] + float(votes[i, j] @ v[j]) for j in range(3)] for i in range(5)]
    routed = dynamic_routing(votes[None], torch.ones(1, 5), iterations=4, bias=bias)
    assert_close(routed.poses[0], torch.stack(v))
    assert_close(routed.coupling[0], torch.stack(c))


def test_last_gradient_holds_the_couplings_constant():
    votes = draw(2, 6, 4, 5).requires_grad_()
    bias = draw(4, 5, seed=3).requires_grad_()
    ones = torch.ones(2, 6, dtype=torch.float64)
    routed = dynamic_routing(votes, ones, gradient="last", bias=bias)
    got = torch.autograd.grad(routed.poses.sum(), [votes, bias])
    pooled = torch.einsum("bio,biod->bod", routed.coupling.detach(), votes) + bias
    expected = torch.autograd.grad(squashed(pooled).sum(), [votes, bias])
    for mine, theirs in zip(got, expected, strict=True):
        assert_close(mine, theirs)


def test_with_votes_learning_in_the_last_round_the_bias_learns_in_all():
    """With constant votes, the bias has the derivative that finite differences see."""
    votes, bias = draw(2, 6, 4, 5).requires_grad_(), draw(4, 5, seed=3).requires_grad_()
    ones = torch.ones(2, 6, dtype=torch.float64)

    def gradients(gradient):
        routed = dynamic_routing(votes, ones, gradient=gradient, bias=bias)
        return torch.autograd.grad(routed.poses.sum(), [votes, bias])

    full, last, mixed = (gradients(name) for name in ("full", "last", "last_votes"))
    assert_close(mixed[0], last[0])
    assert_close(mixed[1], full[1])
    assert not torch.allclose(last[1], full[1])
    step = torch.zeros_like(bias)
    step[1, 2] = 1e-6
    above, below = (dynamic_routing(votes, ones, bias=bias + sign * step).poses.sum() for sign in (1, -1))
    assert_close(mixed[1][1, 2], (above - below) / 2e-6, rtol=1e-6, atol=1e-8)


def test_a_bias_of_the_last_round_is_not_in_the_agreement():
    votes, bias, ones = draw(2, 6, 4, 5), draw(4, 5, seed=3), torch.ones(2, 6, dtype=torch.float64)
    late = dynamic_routing(votes, ones, bias=bias, inner_bias=False)
    assert_close(late.coupling, dynamic_routing(votes, ones).coupling)
    assert_close(late.poses, squashed(torch.einsum("bio,biod->bod", late.coupling, votes) + bias))


@pytest.mark.parametrize("gradient", ["last", "last_votes"])
def test_all_gradients_have_the_same_forward(gradient):
    votes, ones = draw(2, 6, 4, 5), torch.ones(2, 6, dtype=torch.float64)
    assert_close(
        dynamic_routing(votes, ones, gradient=gradient).poses,
        dynamic_routing(votes, ones, gradient="full").poses,
    )


def test_leaky_children_may_choose_no_parent():
    votes, ones = draw(2, 6, 4, 5), torch.ones(2, 6, dtype=torch.float64)
    even = dynamic_routing(votes, ones, leaky=True, iterations=1).coupling
    assert_close(even, torch.full_like(even, 1 / 5))
    share = dynamic_routing(votes, ones, leaky=True).coupling.sum(-1)
    assert (share < 1).all()
    assert (share > 0).all()


def test_couplings_sharpen_with_iterations():
    votes, ones = draw(2, 50, 4, 5), torch.ones(2, 50, dtype=torch.float64)
    strongest = [dynamic_routing(votes, ones, iterations=r).coupling.amax(-1).mean() for r in (1, 3, 10)]
    assert strongest[0] < strongest[1] < strongest[2]


@pytest.mark.parametrize("settings", [{"iterations": 0}, {"gradient": "some"}])
def test_impossible_settings_are_refused(settings):
    with pytest.raises(REFUSED, match=next(iter(settings))):
        DynamicRouting(SHAPE, **settings)


def test_a_misspelt_gradient_is_refused_by_the_function_too():
    with pytest.raises(REFUSED, match="gradient"):
        dynamic_routing(draw(2, 6, 4, 5), draw(2, 6), gradient="Last")


@pytest.mark.parametrize("leaky", [False, True])
@pytest.mark.parametrize("parents", [1, 3, 10, 1000])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_first_round_splits_as_a_softmax_of_zeros_does(parents, leaky, dtype):
    votes = torch.zeros(2, 5, parents, 4, dtype=dtype)
    assert torch.equal(even_split(votes, leaky), split_over_parents(votes.sum(-1), leaky))


@pytest.mark.parametrize("settings", [{"leaky": True}, {"inner_bias": False}, {"iterations": 1}], ids=str)
def test_the_cost_formula_knows_a_leak_and_a_late_bias(settings):
    routing, votes = DynamicRouting(SHAPE, **settings).double(), draw(1, *SHAPE)
    assert routing.cost(SHAPE).flops == count_operations(routing, votes, votes[..., 0, 0])
