import math

import pytest
import torch
from torch.testing import assert_close
from torch.utils._python_dispatch import TorchDispatchMode

from torchcaps.routing import SelfAttentionRouting, self_attention_routing

from accuracy import assert_as_accurate_as
from routing.contract import POSE, SHAPE, RoutingContract, draw
from routing.operations import count_operations


class TestSelfAttention(RoutingContract):
    name = "self_attention"
    one_round = {}
    priors = ("prior",)

    def closed_form(self, routing, votes, activations):
        agreement = torch.einsum("biod,bkod->biko", votes, votes).sum(2) / math.sqrt(POSE)
        coupling = torch.exp(agreement) / torch.exp(agreement).sum(-1, keepdim=True) + routing.prior
        s = (coupling[..., None] * votes).sum(1)
        length = s.norm(dim=-1, keepdim=True)
        return (1 - torch.exp(-length)) * s / length

    def test_the_cost_formula_counts_the_products_that_run(self, routing, votes, activations):
        # each vote is multiplied twice, with the sum of votes and with its coupling; PyTorch counts neither,
        # because they are no matrix products
        assert len(votes) * routing.cost(SHAPE).multiply_adds == 2 * votes.numel()


def test_the_cost_formula_knows_whether_there_is_a_prior():
    routing, votes = SelfAttentionRouting(SHAPE, prior=False).double(), draw(1, *SHAPE)
    assert routing.cost(SHAPE).flops == count_operations(routing, votes, votes[..., 0, 0])


def test_a_prior_moves_couplings_out_of_the_softmax():
    votes, ones = draw(1, 6, 4, 5), torch.ones(1, 6, dtype=torch.float64)
    prior = torch.full((6, 4), 0.25, dtype=torch.float64)
    torch.testing.assert_close(
        self_attention_routing(votes, ones, prior=prior).coupling,
        self_attention_routing(votes, ones).coupling + 0.25,
    )


def draw_child_by_child(batch, in_caps, out_caps, pose):
    """Votes that lie in memory as fully connected capsules cast them."""
    return draw(in_caps, batch, out_caps, pose).div(4).transpose(0, 1)


class Largest(TorchDispatchMode):
    """Finds the most numbers that one operation writes; views write none."""

    def __init__(self):
        super().__init__()
        self.size = 0

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        found = operation(*args, **(kwargs or {}))
        is_written = isinstance(found, torch.Tensor) and not operation.is_view
        self.size = max(self.size, found.numel() * is_written)
        return found


@pytest.mark.parametrize("children", [8, 300])
def test_where_votes_lie_in_memory_does_not_matter(children):
    votes, prior = draw_child_by_child(3, children, 4, 5), draw(children, 4, seed=1)
    found = []
    for given in (votes, votes.contiguous()):
        routed = self_attention_routing(given.requires_grad_(), given[..., 0, 0], prior=prior)
        gradient = torch.autograd.grad((routed.poses * draw(3, 4, 5, seed=2)).sum(), given)
        found.append((*routed, *gradient))
    assert_close(*found)


def test_many_children_are_as_accurate_wherever_their_votes_lie():
    exact, *found = (
        self_attention_routing(votes, votes[..., 0, 0]).poses
        for double in [draw_child_by_child(3, 300, 4, 5)]
        for votes in (double, double.float(), double.float().contiguous())
    )
    assert_as_accurate_as(*found, exact)


def test_votes_of_many_children_are_not_written_again():
    votes = draw_child_by_child(3, 300, 4, 5)
    with Largest() as written:
        self_attention_routing(votes, votes[..., 0, 0])
    assert written.size == 3 * 300 * 4  # agreement and couplings


@pytest.mark.parametrize("children", [16, 300])
def test_no_bit_of_a_sample_depends_on_how_many_there_are(children):
    base = draw(children, 9, 4, 16, dtype=torch.float32)
    routed = self_attention_routing(base.transpose(0, 1), torch.ones(9, children))
    for count in (1, 2, 5):
        votes = base[:, :count].contiguous().transpose(0, 1)
        some = self_attention_routing(votes, torch.ones(count, children))
        assert all(torch.equal(part, whole[:count]) for part, whole in zip(some, routed, strict=True))
