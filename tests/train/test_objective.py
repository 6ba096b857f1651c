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


@pytest.mark.parametrize(("weight", "has_decoder", "decoder"), [(0.0, True, "none"), (0.1, False, "fc")])
def test_decoder_and_reconstruction_weight_belong_together(weight, has_decoder, decoder):
    remedy = rf"or model\.decoder={decoder} \(model\.reconstruction of a SegCaps"
    with pytest.raises(UserError, match=f"belong together.*{remedy}"):
        Objective(LossSettings(reconstruction=weight), has_decoder=has_decoder)
