import pytest
import torch
from torch.nn import functional as F
from torch.testing import assert_close

from torchcaps.losses import (
    cross_entropy_loss,
    margin_by_epoch,
    margin_by_step,
    margin_loss,
    reconstruction_loss,
    spread_loss,
)


def test_margin_loss_by_hand():
    activations = torch.tensor([[0.5, 0.3, 0.05], [0.2, 0.95, 0.1]])
    by_hand = ((0.4**2 + 0.5 * 0.2**2) + 0.5 * 0.1**2) / 2
    assert_close(margin_loss(activations, torch.tensor([0, 1])), torch.tensor(by_hand))


def test_margin_loss_is_zero_inside_the_margins():
    assert margin_loss(torch.tensor([[0.95, 0.05]]), torch.tensor([0])) == 0


def test_spread_loss_by_hand():
    activations = torch.tensor([[0.6, 0.5, 0.1]])
    by_hand = (0.9 - 0.1) ** 2 + (0.9 - 0.5) ** 2
    assert_close(spread_loss(activations, torch.tensor([0]), margin=0.9), torch.tensor(by_hand))


def test_spread_margins_follow_their_schedules():
    assert [margin_by_epoch(epoch) for epoch in (0, 3, 7, 50)] == pytest.approx([0.2, 0.5, 0.9, 0.9])
    assert margin_by_step(200_000) == pytest.approx(0.2 + 0.79 / 2)
    assert margin_by_step(0) < 0.22
    assert margin_by_step(10**9) == pytest.approx(0.99, abs=1e-3)


def test_reconstruction_loss_is_a_sum_over_pixels():
    images = torch.rand(4, 1, 28, 28)
    other = torch.rand(4, 1, 28, 28)
    mean = torch.nn.functional.mse_loss(other, images)
    assert_close(0.0005 * reconstruction_loss(other, images), 0.392 * mean)


def test_cross_entropy_of_probabilities_is_that_of_their_logits():
    logits = torch.randn(5, 4, dtype=torch.float64, requires_grad=True)
    labels = torch.tensor([0, 3, 1, 1, 2])
    (mine,) = torch.autograd.grad(cross_entropy_loss(logits.softmax(1), labels), logits)
    (theirs,) = torch.autograd.grad(F.cross_entropy(logits, labels), logits)
    assert_close(mine, theirs)
    vanished = torch.tensor([[1.0, 0.0]], requires_grad=True)
    assert cross_entropy_loss(vanished, torch.tensor([1])).isfinite()
