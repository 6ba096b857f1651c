import pytest
import torch

from torchcaps.core import CapsuleOutput, UserError
from torchcaps.losses import SpreadLoss
from torchcaps.train import LossSettings, Objective


def test_the_spread_margin_grows_with_the_epochs():
    objective = Objective(LossSettings(task_loss=SpreadLoss()), has_decoder=False)
    output = CapsuleOutput(torch.tensor([[0.6, 0.5]]), torch.zeros(1, 2, 1))
    losses = []
    for epoch in (0, 3):
        objective.start_epoch(epoch)
        losses.append(float(objective(output, torch.tensor([0]), torch.zeros(1, 1, 2, 2))))
        assert float(objective.evaluate(output, torch.tensor([0]), torch.zeros(1, 1, 2, 2))) == pytest.approx(
            0.8**2
        )
    assert losses == pytest.approx([0.1**2, 0.4**2])


@pytest.mark.parametrize(("weight", "has_decoder"), [(0.0, True), (0.1, False)])
def test_decoder_and_reconstruction_weight_belong_together(weight, has_decoder):
    with pytest.raises(
        UserError, match=r"belong together.*change model\.decoder \(model\.reconstruction of a SegCaps"
    ):
        Objective(LossSettings(reconstruction=weight), has_decoder=has_decoder)
