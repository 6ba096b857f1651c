"""Losses of two classes at once, by hand."""

import math

import pytest
import torch
from torch.testing import assert_close

from torchcaps.core import CapsuleOutput, UserError
from torchcaps.losses.pair import PairCrossEntropyLoss, PairMarginLoss, pair_margin_loss


def test_both_classes_are_to_be_long_and_all_others_short():
    activations = torch.tensor([[0.5, 0.95, 0.3, 0.05]])
    by_hand = 0.4**2 + 0.5 * 0.2**2
    labels = torch.tensor([[1, 0]])
    assert_close(pair_margin_loss(activations, labels), torch.tensor(by_hand))
    made = PairMarginLoss(present=0.8, absent=0.2, absent_weight=1.0)
    output = CapsuleOutput(activations, torch.zeros(1, 4, 2))
    assert_close(made(output, labels), torch.tensor(0.3**2 + 0.1**2))


def test_two_of_one_class_count_as_one():
    activations = torch.tensor([[0.5, 0.0]])
    assert_close(pair_margin_loss(activations, torch.tensor([[0, 0]])), torch.tensor(0.4**2))


def test_cross_entropy_reads_the_first_component_of_each_pose():
    logits = torch.tensor([[2.0, -1.0, 0.5], [0.0, 3.0, -2.0]])
    poses = torch.stack([logits, torch.full_like(logits, 9.0)], dim=-1)
    labels = torch.tensor([[0, 2], [1, 1]])
    present = [[True, False, True], [False, True, False]]
    by_hand = [
        sum(math.log1p(math.exp(-x if there else x)) for x, there in zip(row, is_there, strict=True))
        for row, is_there in zip(logits.tolist(), present, strict=True)
    ]
    loss = PairCrossEntropyLoss()(CapsuleOutput(logits.sigmoid(), poses), labels)
    assert float(loss) == pytest.approx(sum(by_hand) / 2)


@pytest.mark.parametrize("labels", [[[0, 3]], [[-1, 0]]])
def test_a_class_that_is_not_there_is_refused_in_either_place(labels):
    with pytest.raises(UserError):
        pair_margin_loss(torch.rand(1, 3), torch.tensor(labels))
