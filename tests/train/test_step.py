import pytest
import torch

from torchcaps.core import CapsuleOutput, UserError
from torchcaps.train import Objective
from torchcaps.train.recipe import Loss, Optim
from torchcaps.train.step import learning_rate


def test_the_rate_decays_by_epochs_or_by_steps_down_to_its_floor():
    by_epoch = Optim(learning_rate=1e-3, decay=0.5, floor=2e-4)
    assert [learning_rate(by_epoch, epoch, 0) for epoch in range(4)] == pytest.approx(
        [1e-3, 5e-4, 2.5e-4, 2e-4]
    )
    by_step = Optim(learning_rate=1e-3, decay=0.96, decay_steps=2000)
    assert learning_rate(by_step, 0, 1000) == pytest.approx(1e-3 * 0.96**0.5)


def test_the_spread_margin_grows_with_the_epochs():
    objective = Objective(Loss(name="spread"), has_decoder=False)
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
    with pytest.raises(UserError, match="belong together"):
        Objective(Loss(reconstruction=weight), has_decoder=has_decoder)
