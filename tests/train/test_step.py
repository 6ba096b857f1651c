import numpy as np
import pytest
import torch

from torchcaps.core import CapsuleOutput, UserError
from torchcaps.train import Machine, Objective
from torchcaps.train.evaluate import evaluate
from torchcaps.train.recipe import Loss, Optim, Recipe, build
from torchcaps.train.session import Session, launch
from torchcaps.train.step import learning_rate


def session(decoder="none", **changes):
    values = {
        "model": {"name": "dr_capsnet_tiny_test", "image_size": 28, "num_classes": 10, "decoder": decoder},
        "data": {"name": "synthetic_mnist", "limit": 40, "validation": 0.2},
        "optim": {"learning_rate": 1e-2, "decay": 0.9},
        "batch_size": 16,
        "epochs": 2,
    }
    return Session(launch(Machine(device="cpu")), build(Recipe, {**values, **changes}), None)


def test_the_decoder_draws_the_true_class_in_training_and_the_longest_in_evaluation():
    run, seen = session("fc", loss={"reconstruction": 0.001}), []
    run.network.decoder.register_forward_pre_hook(lambda _, inputs: seen.append(inputs))
    indices = next(run.start_epoch(0))
    run.step(indices)
    assert torch.equal(seen[0][1], run.splits.train.labels[indices])
    evaluate(run.model, run.splits.validation, run.pipeline, run.objective)
    assert torch.equal(seen[1][1], seen[1][0].norm(dim=-1).argmax(1))
    assert not torch.equal(seen[1][1], run.splits.validation.labels)


def test_a_step_that_prunes_pulls_first_then_follows_adam_and_keeps_the_zeros_of_the_epoch():
    run = session(pruning={"strength": 0.05, "decay": 0.5})
    weights = {name: p for name, p in run.network.named_parameters() if not name.endswith("bias")}
    with torch.no_grad():
        run.network.classes.weight[:2] = 0
    moments = {name: np.zeros((2, *p.shape)) for name, p in weights.items()}
    step = 0
    for epoch in range(2):
        zeros = {name: p.detach().numpy() == 0 for name, p in weights.items()}
        for indices in run.start_epoch(epoch):
            before = {name: p.detach().double().numpy().copy() for name, p in weights.items()}
            run.step(indices)
            step += 1
            for name, parameter in weights.items():
                theta, slope = before[name], parameter.grad.double().numpy()
                theta -= 0.05 * 0.5**epoch * theta * np.maximum(0, 1 - np.abs(slope))
                moments[name] += (np.stack([slope, slope**2]) - moments[name]) * _share(slope)
                mean, square = (m / (1 - beta**step) for m, beta in zip(moments[name], BETAS, strict=True))
                theta -= 1e-2 * 0.9**epoch * mean / (np.sqrt(square) + 1e-8)
                theta[zeros[name]] = 0
                np.testing.assert_allclose(parameter.detach().numpy(), theta, rtol=0, atol=1e-6)


BETAS = (0.9, 0.999)


def _share(slope):
    return 1 - np.array(BETAS).reshape(2, *[1] * slope.ndim)


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
