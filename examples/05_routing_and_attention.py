"""Routing and attention on the same votes: who normalises over whom, and what a parent is made of."""

import torch
from torch.nn import functional as F

from torchcaps.routing import dynamic_routing

torch.manual_seed(0)
children, parents, pose = 5, 2, 4
agreed = torch.tensor([2.0, -2.0, 1.0, 0.0])
votes = 0.3 * torch.randn(children, parents, pose)
votes[:3, 0] = agreed + 0.1 * torch.randn(3, pose)  # three children agree on parent 0
votes[3:, 1] = -agreed + 0.1 * torch.randn(2, pose)  # two agree on parent 1

routed = dynamic_routing(votes[None], torch.ones(1, children), iterations=3)
queries = dynamic_routing(votes[None], torch.ones(1, children), iterations=2).poses[0]  # of the round before

# The same step written as attention: the parents of the round before ask, the votes are keys and values.
keys = values = votes.transpose(0, 1)  # (parents, children, pose)
attended = F.scaled_dot_product_attention(queries[:, None], keys, values, scale=1.0)[:, 0]
scores = torch.einsum("jd,jid->ij", queries, keys)
to_parents, over_children = scores.softmax(dim=1), scores.softmax(dim=0)
assert torch.allclose(torch.einsum("ij,ijd->jd", over_children, votes), attended, atol=1e-5)


def show(title: str, shares: torch.Tensor) -> None:
    """A row for each child, a column for each parent."""
    print(f"{title}: rows add up to {shares.sum(1).mean():.2f}, columns to {shares.sum(0).mean():.2f}")
    for number, row in enumerate(shares):
        print(f"  child {number}: " + "  ".join(f"{share:.2f}" for share in row))


show("one step of routing, softmax over parents", to_parents)
show("one step of attention, softmax over children", over_children)
show("three rounds of dynamic routing, logits summed", routed.coupling[0])
lengths = ", ".join(f"{length:.2f}" for length in routed.activations[0])
print(f"lengths of the parents after routing: {lengths}; attention has no activation, only vectors:")
print(f"  their lengths are {', '.join(f'{length:.2f}' for length in attended.norm(dim=1))}")
