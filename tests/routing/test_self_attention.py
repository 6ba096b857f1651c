import math

import torch

from torchcaps.routing import self_attention_routing

from routing.contract import POSE, SHAPE, RoutingContract, draw


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


def test_a_prior_moves_couplings_out_of_the_softmax():
    votes, ones = draw(1, 6, 4, 5), torch.ones(1, 6, dtype=torch.float64)
    prior = torch.full((6, 4), 0.25, dtype=torch.float64)
    torch.testing.assert_close(
        self_attention_routing(votes, ones, prior=prior).coupling,
        self_attention_routing(votes, ones).coupling + 0.25,
    )
