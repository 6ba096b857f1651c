import math

import pytest
import torch
from torch.nn import functional as F
from torch.testing import assert_close

from torchcaps.core import CapsuleOutput, UserError
from torchcaps.losses import (
    LOSSES,
    CrossEntropyLoss,
    MarginLoss,
    SpreadLoss,
    cross_entropy_loss,
    list_losses,
    margin_by_epoch,
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


def test_others_may_count_nothing():
    loss = MarginLoss(absent_weight=0.0)(output(torch.tensor([[0.5, 0.8]])), torch.tensor([0]))
    assert_close(loss, torch.tensor(0.4**2))


def test_spread_loss_by_hand():
    activations = torch.tensor([[0.6, 0.5, 0.1]])
    by_hand = (0.9 - 0.1) ** 2 + (0.9 - 0.5) ** 2
    assert_close(spread_loss(activations, torch.tensor([0]), margin=0.9), torch.tensor(by_hand))


def test_the_spread_margin_grows_with_the_epochs():
    epochs = (0, 3, 7, 50, math.inf)
    expected = pytest.approx([0.2, 0.5, 0.9, 0.9, 0.9])
    assert [margin_by_epoch(epoch) for epoch in epochs] == expected
    assert [SpreadLoss().schedule(epoch)["margin"] for epoch in epochs] == expected


def output(activations):
    return CapsuleOutput(activations, torch.zeros(*activations.shape, 4))


def test_losses_by_name_are_the_functions_with_their_settings():
    activations, labels = torch.rand(5, 4).softmax(1), torch.tensor([0, 3, 1, 1, 2])
    made = MarginLoss(present=0.8, absent=0.2, absent_weight=0.3)
    assert made(output(activations), labels) == margin_loss(
        activations, labels, present=0.8, absent=0.2, absent_weight=0.3
    )
    margin = torch.tensor(0.4)
    assert SpreadLoss()(output(activations), labels, margin=margin) == spread_loss(
        activations, labels, margin=0.4
    )
    assert CrossEntropyLoss()(output(activations), labels) == cross_entropy_loss(activations, labels)


def test_losses_are_listed_by_task():
    assert list_losses("classification") == ["cross_entropy", "margin", "spread"]
    assert list_losses("segmentation") == ["dice_cross_entropy"]
    with pytest.raises(UserError, match="did you mean spread"):
        LOSSES["sprad"]


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
    vanished = cross_entropy_loss(torch.tensor([[1.0, 0.0]]), torch.tensor([1]))
    assert float(vanished) == pytest.approx(126 * math.log(2))  # the smallest normal number is 2**-126


@pytest.mark.parametrize("smoothing", [0.1, 0.5])
def test_smoothed_labels_are_those_of_pytorch(smoothing):
    logits = torch.randn(5, 4, dtype=torch.float64, requires_grad=True)
    labels = torch.tensor([0, 3, 1, 1, 2])
    loss = CrossEntropyLoss(label_smoothing=smoothing)
    mine = loss(output(logits.softmax(1)), labels)
    theirs = F.cross_entropy(logits, labels, label_smoothing=smoothing)
    assert_close(mine, theirs)
    assert_close(*(torch.autograd.grad(value, logits)[0] for value in (mine, theirs)))


@pytest.mark.parametrize("smoothing", [-0.1, 1.0])
def test_smoothing_leaves_something_to_the_true_class(smoothing):
    with pytest.raises(UserError, match="label_smoothing must lie in"):
        CrossEntropyLoss(label_smoothing=smoothing)
