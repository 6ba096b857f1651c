"""Marked `compile` because the run-time shape checks of the other pass would answer first."""

import pytest
import torch

from torchcaps.core import UserError
from torchcaps.layers import ConvDecoder, FcDecoder
from torchcaps.losses import coupling_entropy_loss, margin_loss, spread_loss
from torchcaps.losses.cross_entropy import cross_entropy_loss

pytestmark = pytest.mark.compile
USERS = {
    "margin": lambda labels: margin_loss(torch.rand(4, 3), labels),
    "spread": lambda labels: spread_loss(torch.rand(4, 3), labels),
    "cross entropy": lambda labels: cross_entropy_loss(torch.rand(4, 3), labels),
    "couplings": lambda labels: coupling_entropy_loss(torch.rand(4, 5, 3), labels),
    "decoder": lambda labels: FcDecoder(3, 2, (1, 4, 4), (5, 6))(torch.rand(4, 3, 2), labels),
    "unmasked": lambda labels: FcDecoder(3, 2, (1, 4, 4), (5, 6), masked=False)(torch.rand(4, 3, 2), labels),
    "convolutions": lambda labels: ConvDecoder(2, (1, 8, 8))(torch.rand(4, 3, 2), labels),
}


@pytest.mark.parametrize("use", USERS.values(), ids=USERS)
@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (torch.tensor([1]), "one class for each of 4 samples"),
        (torch.tensor([0, 1]), "one class for each of 4 samples"),
        (torch.tensor([0, 1, 2, 3]), "between 0 and 2, got labels from 0 to 3"),
        (torch.tensor([0, -1, 2, 0]), "between 0 and 2, got labels from -1 to 2"),
        (torch.tensor([0.0, 1.0, 2.0, 0.0]), r"whole numbers of type torch\.int64, got torch\.float32"),
        (torch.tensor([0, 1, 2, 0], dtype=torch.uint8), r"torch\.int64, got torch\.uint8"),
    ],
    ids=["one", "few", "above", "below", "real", "bytes"],
)
def test_labels_that_do_not_fit_are_refused(use, labels, message):
    with pytest.raises(UserError, match=message):
        use(labels)


@pytest.mark.parametrize("use", USERS.values(), ids=USERS)
def test_fitting_labels_pass(use):
    assert use(torch.tensor([0, 1, 2, 0])).isfinite().all()
