"""The triplet loss against a loop over all triplets."""

import pytest
import torch
from torch.testing import assert_close

from torchcaps.core import DescriptorOutput, UserError
from torchcaps.losses import batch_all_triplet_loss
from torchcaps.losses.triplet import TripletLoss


def by_loops(descriptors, places, margin):
    """The mean cost of the triplets that cost something."""
    costs = []
    count = range(len(places))
    for a in count:
        for p in count:
            for n in count:
                if a != p and places[a] == places[p] and places[a] != places[n]:
                    near, far = (float((descriptors[a] - descriptors[other]).norm()) for other in (p, n))
                    costs.append(near - far + margin)
    costly = [cost for cost in costs if cost > 0]
    return sum(costly) / max(len(costly), 1)


@pytest.mark.parametrize("margin", [0.05, 0.2, 1.0])
def test_it_is_the_mean_of_costly_triplets(margin):
    descriptors = torch.randn(7, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    places = torch.tensor([0, 0, 1, 1, 1, 2, 0])
    expected = by_loops(descriptors, places, margin)
    assert float(batch_all_triplet_loss(descriptors, places, margin=margin)) == pytest.approx(expected)
    made = TripletLoss(margin=margin)(DescriptorOutput(descriptors), places)
    assert float(made) == pytest.approx(expected)


def test_places_that_are_far_apart_or_alone_cost_nothing():
    descriptors = torch.tensor([[0.0, 0.0], [0.0, 0.0], [5.0, 0.0]], requires_grad=True)
    loss = batch_all_triplet_loss(descriptors, torch.tensor([0, 0, 1]))
    loss.backward()
    assert loss == 0
    assert torch.equal(descriptors.grad, torch.zeros(3, 2))  # coinciding descriptors have one too
    assert batch_all_triplet_loss(torch.randn(3, 2), torch.tensor([0, 1, 2])) == 0


def test_its_gradient_is_that_of_finite_differences():
    descriptors = torch.randn(5, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    places = torch.tensor([0, 0, 1, 1, 2])
    assert torch.autograd.gradcheck(
        lambda each: batch_all_triplet_loss(each, places, margin=0.5), descriptors.requires_grad_()
    )


def test_a_single_costly_triplet_is_not_averaged_with_free_ones():
    descriptors = torch.tensor([[0.0], [1.0], [1.5], [9.0]])
    # anchor 1: 1 - 0.5 + 0.2; anchor 0: 1 - 1.5 + 0.2 is free, as is all that has to do with the last
    assert_close(batch_all_triplet_loss(descriptors, torch.tensor([0, 0, 1, 2])), torch.tensor(0.7))


def test_a_margin_must_be_positive():
    with pytest.raises(UserError, match="margin must be positive"):
        TripletLoss(margin=0.0)
