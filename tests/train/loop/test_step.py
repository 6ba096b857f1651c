import numpy as np
import torch

from torchcaps.train import Machine
from torchcaps.train.evaluate import evaluate
from torchcaps.train.loop import Session
from torchcaps.train.machine import launch

from small_runs import MODEL, small_recipe


def session(decoder="none", **changes):
    own = {
        "model": {**MODEL, "decoder": decoder},
        "optim": {"learning_rate": 1e-2, "decay": 0.9},
        "epochs": 2,
    }
    return Session(launch(Machine(device="cpu")), small_recipe(**{**own, **changes}), None)


def test_the_decoder_draws_the_true_class_in_training_and_the_longest_in_evaluation():
    run, seen = session("fc", loss={"reconstruction": 0.001}), []
    run.network.decoder.register_forward_pre_hook(lambda _, inputs: seen.append(inputs))
    indices = next(run.epoch(0))
    run.step(indices)
    assert torch.equal(seen[0][1], run.splits.train.labels[indices])
    evaluate(run.model, run.splits.validation, run.task, run.pipeline, run.objective)
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
        for indices in run.epoch(epoch):
            before = {name: p.detach().double().numpy().copy() for name, p in weights.items()}
            run.step(indices)
            run.advance()
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
