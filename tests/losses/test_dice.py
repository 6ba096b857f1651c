import math

import pytest
import torch
from torch.testing import assert_close

from torchcaps.core import SegmentationOutput, UserError
from torchcaps.losses import DiceCrossEntropyLoss, class_masks, pixel_cross_entropy, soft_dice_loss

ACTIVATIONS = torch.tensor([[[[0.8, 0.4], [0.1, 0.5]]], [[[0.2, 0.2], [0.2, 0.2]]]])
MASKS = torch.tensor([[[[1.0, 0.0], [0.0, 1.0]]], [[[0.0, 0.0], [0.0, 0.0]]]])


def test_dice_by_hand():
    first = 1 - (2 * (0.8 + 0.5) + 1) / (1.8 + 2 + 1)
    empty = 1 - 1 / (0.8 + 1)
    assert_close(soft_dice_loss(ACTIVATIONS, MASKS), torch.tensor((first + empty) / 2))


def test_a_perfect_answer_costs_nothing():
    assert soft_dice_loss(MASKS, MASKS) == 0
    assert pixel_cross_entropy(MASKS, MASKS) < 1e-5


def test_each_class_counts_alike():
    masks = torch.zeros(1, 2, 4, 4)
    masks[0, 0, 0, 0] = 1
    masks[0, 1] = 1
    answer = torch.ones(1, 2, 4, 4)
    small = 1 - (2 + 1) / (16 + 1 + 1)
    assert_close(soft_dice_loss(answer, masks), torch.tensor(small / 2))


def test_cross_entropy_by_hand():
    inside = math.log(0.8) + math.log(0.5)
    outside = math.log(0.6) + math.log(0.9) + 4 * math.log(0.8)
    assert_close(pixel_cross_entropy(ACTIVATIONS, MASKS), torch.tensor(-(inside + outside) / 8))
    weighted = pixel_cross_entropy(ACTIVATIONS, MASKS, positive_weight=3.0)
    assert_close(weighted, torch.tensor(-(3 * inside + outside) / 8))


def test_logits_give_the_same_value():
    logits = torch.logit(ACTIVATIONS)
    for weight in (1.0, 2.5):
        assert_close(
            pixel_cross_entropy(ACTIVATIONS, MASKS, positive_weight=weight),
            pixel_cross_entropy(ACTIVATIONS, MASKS, positive_weight=weight, logits=logits),
        )


def test_saturated_pixels_learn_through_logits():
    logits = torch.full((1, 1, 1, 1), 40.0, requires_grad=True)
    pixel_cross_entropy(logits.sigmoid(), torch.zeros(1, 1, 1, 1), logits=logits).backward()
    assert_close(logits.grad, torch.ones(1, 1, 1, 1))


def test_extreme_activations_stay_finite():
    activations = torch.tensor([[[[0.0, 1.0]]]], requires_grad=True)
    loss = DiceCrossEntropyLoss()(SegmentationOutput(activations), torch.tensor([[[1, 0]]]))
    loss.backward()
    assert loss.isfinite()
    assert activations.grad.isfinite().all()


@pytest.mark.parametrize("dice_weight", [0.0, 1.0, 0.3])
@pytest.mark.parametrize("cross_entropy_weight", [0.5, 1.0])
def test_the_sum_weighs_its_parts(dice_weight, cross_entropy_weight):
    pixels = pixel_cross_entropy(ACTIVATIONS, MASKS, positive_weight=2.0)
    loss = DiceCrossEntropyLoss(
        dice_weight=dice_weight, cross_entropy_weight=cross_entropy_weight, positive_weight=2.0
    )
    parts = cross_entropy_weight * pixels + dice_weight * soft_dice_loss(ACTIVATIONS, MASKS)
    assert_close(loss(SegmentationOutput(ACTIVATIONS), MASKS[:, 0].byte()), parts)


def test_the_sum_takes_logits_where_there_are_some():
    logits = torch.full((1, 1, 1, 1), 40.0, requires_grad=True)
    loss = DiceCrossEntropyLoss(dice_weight=0.0)
    loss(SegmentationOutput(logits.sigmoid(), logits), torch.zeros(1, 1, 1, dtype=torch.uint8)).backward()
    assert_close(logits.grad, torch.ones(1, 1, 1, 1))


def test_class_numbers_become_a_mask_for_each_class():
    numbers = torch.tensor([[[0, 1], [2, 1]]], dtype=torch.uint8)
    expected = torch.tensor([[[[0.0, 1.0], [0.0, 1.0]], [[0.0, 0.0], [1.0, 0.0]]]])
    assert_close(class_masks(numbers, 2), expected)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"dice_weight": -1.0}, "dice_weight must not be negative"),
        ({"dice_weight": 0.0, "cross_entropy_weight": 0.0}, "nothing is learnt"),
    ],
)
def test_weights_without_a_loss_are_refused(settings, message):
    with pytest.raises(UserError, match=message):
        DiceCrossEntropyLoss(**settings)


def test_half_precision_is_summed_in_float32():
    activations = torch.full((1, 1, 64, 64), 0.7, dtype=torch.bfloat16)
    loss = soft_dice_loss(activations, torch.ones(1, 1, 64, 64, dtype=torch.bfloat16))
    assert loss.dtype == torch.float32
    assert loss == pytest.approx(1 - 2 * 0.7 / 1.7, abs=2e-3)


@pytest.mark.gpu
@pytest.mark.parametrize("logits", [None, ACTIVATIONS.logit()])
def test_it_can_be_captured(logits):
    activations, masks = ACTIVATIONS.cuda(), MASKS[:, 0].long().cuda()
    output = SegmentationOutput(activations, logits=None if logits is None else logits.cuda())
    loss = DiceCrossEntropyLoss(positive_weight=5)
    expected, graph = loss(output, masks), torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        captured = loss(output, masks)
    graph.replay()
    assert_close(captured, expected)


def test_pixels_near_a_border_count_more():
    masks = torch.zeros(1, 9, 9, dtype=torch.uint8)
    masks[:, :, 5:] = 1  # a border between columns 4 and 5: columns 3 to 6 lie within two pixels of it
    output = SegmentationOutput(torch.full((1, 1, 9, 9), 0.5))
    plain, weighed = (
        DiceCrossEntropyLoss(dice_weight=0.0, border_weight=weight)(output, masks) for weight in (0.0, 3.0)
    )
    assert float(weighed / plain) == pytest.approx((5 + 4 * 4) / 9)
    logits = output._replace(logits=torch.zeros(1, 1, 9, 9))
    assert_close(DiceCrossEntropyLoss(dice_weight=0.0, border_weight=3.0)(logits, masks), weighed)


def test_smaller_masks_are_compared_with_the_share_of_each_square_that_is_inside():
    masks = torch.zeros(1, 4, 4, dtype=torch.uint8)
    masks[:, :2, :3] = 1
    output = SegmentationOutput(torch.full((1, 1, 4, 4), 0.4))
    small = torch.tensor([[[[0.9, 0.6], [0.2, 0.1]]]])
    shares = torch.tensor([[[[1.0, 0.5], [0.0, 0.0]]]])
    alone = DiceCrossEntropyLoss()(output, masks)
    deep = DiceCrossEntropyLoss(deep_weight=0.25)(output._replace(deeper=(small,)), masks)
    expected = soft_dice_loss(small, shares) + pixel_cross_entropy(small, shares)
    assert_close(deep - alone, 0.25 * expected)


def test_several_smaller_masks_weigh_by_their_mean():
    masks = torch.ones(1, 4, 4, dtype=torch.uint8)
    loss = DiceCrossEntropyLoss(dice_weight=0.0, deep_weight=0.5)
    output = SegmentationOutput(torch.full((1, 1, 4, 4), 0.9))
    deeper = (torch.full((1, 1, 2, 2), 0.4), torch.full((1, 1, 1, 1), 0.2))
    by_hand = -math.log(0.9) - 0.5 * (math.log(0.4) + math.log(0.2)) / 2
    assert_close(loss(output._replace(deeper=deeper), masks), torch.tensor(by_hand))
