"""Marked `compile` although some do not: the run-time shape checks of the other pass would answer first."""

import pytest
import torch
from torch.testing import assert_close

from torchcaps.core import SegmentationOutput, UserError
from torchcaps.losses import (
    DiceCrossEntropyLoss,
    coupling_entropy_loss,
    margin_loss,
    pixel_cross_entropy,
    reconstruction_loss,
    soft_dice_loss,
    spread_loss,
)

pytestmark = pytest.mark.compile
ZERO = torch.zeros((), dtype=torch.int64)


@pytest.mark.parametrize("loss", [margin_loss, spread_loss])
@pytest.mark.parametrize("labels", [ZERO.view(1), ZERO.expand(4, 1), ZERO])
def test_each_sample_needs_its_label(loss, labels):
    with pytest.raises(UserError, match="one class for each of 4 samples"):
        loss(torch.rand(4, 3), labels)


def test_couplings_need_the_labels_of_all_images():
    with pytest.raises(UserError, match="one class for each of 4 samples"):
        coupling_entropy_loss(torch.rand(4, 5, 3), ZERO.view(1))


@pytest.mark.parametrize(
    ("loss", "answer", "target"),
    [
        (reconstruction_loss, (4, 1, 28, 28), (4, 28, 28)),
        (reconstruction_loss, (4, 1, 28, 28), (1, 1, 28, 28)),
        (pixel_cross_entropy, (4, 1, 8, 8), (4, 8, 8)),
        (soft_dice_loss, (4, 3, 8, 8), (4, 1, 8, 8)),
    ],
)
def test_images_and_masks_are_not_broadcast(loss, answer, target):
    with pytest.raises(UserError, match="must have the same shape"):
        loss(torch.rand(answer), torch.rand(target))


def test_class_numbers_of_another_size_are_not_broadcast():
    with pytest.raises(UserError, match="must have the same shape"):
        DiceCrossEntropyLoss()(SegmentationOutput(torch.rand(4, 3, 8, 8)), torch.zeros(4, 1, 8).byte())


def test_logits_are_named_where_they_do_not_fit():
    fitting = torch.rand(4, 3, 8, 8)
    with pytest.raises(UserError, match="logits and masks"):
        pixel_cross_entropy(fitting, fitting, logits=fitting[:, :1])


def test_right_shapes_pass_under_compile_and_vmap():
    activations, labels = torch.rand(2, 4, 3), torch.tensor([[0, 1, 2, 0], [2, 1, 1, 0]])
    alone = torch.stack([margin_loss(*pair) for pair in zip(activations, labels, strict=True)])
    images, others = torch.rand(4, 1, 8, 8), torch.rand(4, 1, 8, 8)
    assert_close(torch.vmap(margin_loss)(activations, labels), alone)
    compiled = torch.compile(reconstruction_loss, fullgraph=True, backend="eager", dynamic=True)
    assert_close(compiled(images, others), reconstruction_loss(images, others))
