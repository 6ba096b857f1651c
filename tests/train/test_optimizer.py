import math

import pytest
import torch
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from torchcaps.core import UserError
from torchcaps.models import create_model
from torchcaps.train import Machine, Optim, load_run, train
from torchcaps.train.averaging import AveragedWeights
from torchcaps.train.loop import Session
from torchcaps.train.machine import launch
from torchcaps.train.optimizer import make_optimizer, make_schedule
from torchcaps.train.run import inspect_run

from small_runs import SHIFTED_DIGITS, Killer, assert_same_weights, saved_rows, small_recipe, timeless

CPU = Machine(device="cpu")
STEPS, EPOCHS = 5, 6
EVERYTHING = {
    "learning_rate": 1e-2,
    "schedule": "cosine",
    "floor": 1e-4,
    "warm_up": 1.5,
    "clip": 0.5,
    "average": 0.9,
}


def recipe(optim, epochs=4, **changes):
    data = {**SHIFTED_DIGITS, "limit": 30}
    return small_recipe(**{"data": data, "optim": optim, "batch_size": 8, "epochs": epochs, **changes})


@pytest.mark.parametrize(
    "optim",
    [
        {"name": "adam", "learning_rate": 1e-2},
        {"name": "adamw", "learning_rate": 1e-2, "weight_decay": 1e-2},
        {"name": "sgd", "learning_rate": 0.1},
        {"name": "sgd", "learning_rate": 0.5, "momentum": 0.0, "clip": 1.0},
    ],
    ids=["adam", "adamw", "sgd", "sgd without momentum"],
)
def test_each_optimizer_lowers_the_loss(optim, tmp_path):
    train(recipe(optim), tmp_path, CPU)
    losses = [row["train_loss"] for row in saved_rows(tmp_path)]
    assert losses[-1] < 0.8 * losses[0]


@pytest.mark.parametrize(
    ("settings", "reference"),
    [
        (Optim(weight_decay=0.1), lambda weights: torch.optim.Adam(weights, 1e-3, weight_decay=0.1)),
        (
            Optim(name="adamw", weight_decay=0.1),
            lambda weights: torch.optim.AdamW(weights, 1e-3, weight_decay=0.1),
        ),
        (
            Optim(name="sgd", weight_decay=0.1, momentum=0.8),
            lambda weights: torch.optim.SGD(weights, 1e-3, 0.8, weight_decay=0.1, nesterov=True),
        ),
        (Optim(name="sgd", momentum=0.0), lambda weights: torch.optim.SGD(weights, 1e-3)),
    ],
    ids=["adam", "adamw", "sgd", "sgd without momentum"],
)
def test_optimizers_move_weights_as_those_of_torch_do(settings, reference):
    ours, theirs = (torch.nn.Linear(3, 2) for _ in range(2))
    theirs.load_state_dict(ours.state_dict())
    pairs = [(ours, make_optimizer(ours, settings, torch.device("cpu")))]
    pairs += [(theirs, reference(theirs.parameters()))]
    for number in range(3):
        for network, optimizer in pairs:
            optimizer.zero_grad()
            network(torch.full((1, 3), 1.0 + number)).square().sum().backward()
            optimizer.step()
    torch.testing.assert_close(ours.weight, theirs.weight, rtol=1e-6, atol=1e-8)


def rates(settings, rate):
    """The rate of each step of a run; a GPU has it in a tensor that changes in place."""
    weight = torch.nn.Parameter(torch.zeros(()))
    optimizer = torch.optim.SGD([weight], rate)
    place = id(optimizer.param_groups[0]["lr"])
    schedule, found = make_schedule(optimizer, settings, steps=STEPS, epochs=EPOCHS), []
    for _ in range(STEPS * EPOCHS):
        found.append(float(optimizer.param_groups[0]["lr"]))
        optimizer.step()
        schedule.step()
    assert isinstance(rate, float) or id(optimizer.param_groups[0]["lr"]) == place
    return found


def cosine(step, total, floor=0.0):
    return floor + (1 - floor) * (1 + math.cos(math.pi * step / total)) / 2


FORMULAS = {
    "constant": ({}, lambda step: 1),
    "exponential": ({"decay": 0.5}, lambda step: 0.5 ** (step // STEPS)),
    "floor": ({"decay": 0.5, "floor": 2e-4}, lambda step: max(0.5 ** (step // STEPS), 0.2)),
    "by steps": ({"decay": 0.96, "decay_steps": 7}, lambda step: 0.96 ** (step / 7)),
    "step": ({"schedule": "step", "decay": 0.1, "step_epochs": 2}, lambda step: 0.1 ** (step // (2 * STEPS))),
    "step, whatever the steps of another": (
        {"schedule": "step", "decay": 0.1, "step_epochs": 2, "decay_steps": 7},
        lambda step: 0.1 ** (step // (2 * STEPS)),
    ),
    "cosine": ({"schedule": "cosine"}, lambda step: cosine(step, STEPS * EPOCHS)),
    "cosine to a floor": (
        {"schedule": "cosine", "floor": 1e-4},
        lambda step: cosine(step, STEPS * EPOCHS, 0.1),
    ),
}


@pytest.mark.parametrize("kind", [float, torch.tensor])
@pytest.mark.parametrize("name", FORMULAS)
def test_the_rate_of_each_step_follows_its_formula(name, kind):
    settings, factor = FORMULAS[name]
    expected = [1e-3 * factor(step) for step in range(STEPS * EPOCHS)]
    found = rates(Optim(learning_rate=1e-3, **settings), kind(1e-3))
    assert found == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("kind", [float, torch.tensor])
@pytest.mark.parametrize("warm_up", [1.0, 1.5])
@pytest.mark.parametrize("name", ["constant", "exponential", "step", "cosine"])
def test_the_rate_rises_before_it_follows_its_formula(name, warm_up, kind):
    settings, factor = FORMULAS[name]
    rise = round(warm_up * STEPS)
    if name == "cosine":
        factor = lambda step: cosine(step, STEPS * EPOCHS - rise)  # noqa: E731
    expected = [1e-3 * (0.01 + 0.99 * step / rise) for step in range(rise)]
    expected += [1e-3 * factor(step) for step in range(STEPS * EPOCHS - rise)]
    found = rates(Optim(learning_rate=1e-3, warm_up=warm_up, **settings), kind(1e-3))
    assert found == pytest.approx(expected, rel=1e-4)


def test_a_row_has_the_rate_of_the_last_step_of_its_epoch(tmp_path):
    train(recipe({"learning_rate": 1e-3, "schedule": "cosine"}), tmp_path, CPU)
    expected = [1e-3 * cosine(3 * epoch + 2, 12) for epoch in range(4)]  # 24 images in three steps
    assert [row["learning_rate"] for row in saved_rows(tmp_path)] == pytest.approx(expected)


def session(optim, **changes):
    return Session(launch(CPU), recipe(optim, **changes), None)


def test_gradients_are_clipped_together():
    clipped, free = session({"clip": 1e-3}), session({})
    for run in (clipped, free):
        run.step(next(run.epoch(0)))
    norms = [
        torch.cat([weight.grad.flatten() for weight in run.network.parameters()]).norm()
        for run in (clipped, free)
    ]
    assert float(norms[0]) == pytest.approx(1e-3, rel=1e-4)
    assert norms[1] > 2e-3
    scale = norms[0] / norms[1]
    for one, other in zip(clipped.network.parameters(), free.network.parameters(), strict=True):
        torch.testing.assert_close(one.grad, scale * other.grad, rtol=1e-4, atol=1e-9)


@pytest.mark.parametrize("share", [0.9, 0.9999])
def test_numbers_of_capsules_are_not_averaged(share):
    """A shrunk network says in a buffer who votes; a mean of whole numbers is rounded down."""
    network = create_model("deepcaps_tiny_test", voters=3)
    network.classes.voters.copy_(torch.tensor([7, 500, 1999]))
    average = AveragedWeights(network, share)
    for _ in range(3):
        average.follow()
        average.count_step()
    assert torch.equal(average.network.classes.voters, network.classes.voters)


def test_the_average_is_stored_as_pytorch_stores_it():
    """Checkpoints of earlier versions hold what `AveragedModel` wrote."""
    run = session({"learning_rate": 1e-2, "average": 0.7})
    theirs = AveragedModel(run.network, multi_avg_fn=get_ema_multi_avg_fn(0.7), use_buffers=True)
    for indices in list(run.epoch(0))[:3]:
        run.step(indices)
        run.advance()
        theirs.update_parameters(run.network)
    stored = run.weights.state()["average"]
    assert stored.keys() == theirs.state_dict().keys()
    torch.testing.assert_close(stored, dict(theirs.state_dict()))
    other = session({"learning_rate": 1e-2, "average": 0.7})
    other.weights.restore({"average": theirs.state_dict()})
    torch.testing.assert_close(other.weights.state()["average"], stored)


def test_the_health_of_an_epoch_is_that_of_the_average(tmp_path):
    train(recipe({"learning_rate": 1e-2, "average": 0.9}, epochs=1), tmp_path, CPU)
    assert saved_rows(tmp_path)[0]["health"] == pytest.approx(
        inspect_run(load_run(tmp_path), "validation").summary(), abs=1e-5
    )


def test_the_average_is_what_is_evaluated_and_kept():
    run, seen = session({"learning_rate": 1e-2, "average": 0.7}), []
    for indices in list(run.epoch(0))[:2]:
        run.step(indices)
        run.advance()
        seen.append({name: values.clone() for name, values in run.network.state_dict().items()})
    judged, kept = run.weights.judged.state_dict(), run.weights.network.state_dict()
    for name, first in seen[0].items():
        by_hand = 0.7 * first + 0.3 * seen[1][name]
        torch.testing.assert_close(kept[name], by_hand)
        assert torch.equal(judged[name], kept[name])
    assert not torch.equal(kept["stem.weight"], run.network.state_dict()["stem.weight"])


def test_a_run_ends_with_averaged_weights(tmp_path):
    result = train(recipe({"learning_rate": 1e-2, "average": 0.7}, epochs=1), tmp_path, CPU)
    run = session({"learning_rate": 1e-2, "average": 0.7}, epochs=1)
    average = None
    for indices in run.epoch(0):
        run.step(indices)
        run.advance()
        state = {name: values.clone() for name, values in run.network.state_dict().items()}
        average = (
            state
            if average is None
            else {name: torch.lerp(values, state[name], 1 - 0.7) for name, values in average.items()}
        )
    kept = load_run(tmp_path).model.state_dict()
    assert all(torch.allclose(kept[name], values, atol=1e-7) for name, values in average.items())
    assert result["metrics"]["val_loss"] == saved_rows(tmp_path)[0]["val_loss"]


def test_the_average_of_batch_norms_has_their_statistics(tmp_path):
    model = {
        "name": "trunk_classifier_tiny_test",
        "trunk": "resnet_tiny",
        "image_size": 28,
        "num_classes": 10,
    }
    settings = recipe({"average": 0.5}, epochs=1, model=model, loss={"name": "cross_entropy"})
    train(settings, tmp_path, CPU)
    run, means = Session(launch(CPU), settings, None), []
    for indices in run.epoch(0):
        run.step(indices)
        run.advance()
        means.append(run.network.trunk.bn1.running_mean.clone())
    by_hand = 0.25 * means[0] + 0.25 * means[1] + 0.5 * means[2]
    kept = load_run(tmp_path).model.trunk.bn1
    torch.testing.assert_close(kept.running_mean, by_hand)
    assert kept.running_mean.abs().max() > 0


@pytest.mark.parametrize(
    "optim",
    [
        EVERYTHING,
        {
            **EVERYTHING,
            "name": "adamw",
            "weight_decay": 0.1,
            "schedule": "step",
            "step_epochs": 1,
            "decay": 0.5,
        },
        {"name": "sgd", "learning_rate": 0.1, "decay": 0.7, "warm_up": 0.5},
    ],
    ids=["cosine", "step", "exponential"],
)
@pytest.mark.parametrize("epoch", [0, pytest.param(2, marks=pytest.mark.slow)])
def test_a_killed_run_resumes_to_the_same_bits(optim, epoch, tmp_path, monkeypatch):
    monkeypatch.setattr("torchcaps.train.loop.kept._SECONDS_BETWEEN_CHECKPOINTS", 0.0)
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    expected = train(recipe(optim), whole, CPU)
    with pytest.raises(KeyboardInterrupt):
        train(recipe(optim), cut, CPU, watcher=Killer(epoch))
    assert train(recipe(optim), cut, CPU, resume=True)["metrics"] == expected["metrics"]
    assert timeless(cut) == timeless(whole)
    assert_same_weights(whole, cut)
    states = [torch.load(folder / "last.ckpt", weights_only=True) for folder in (whole, cut)]
    assert all(torch.equal(values, states[1]["model"][name]) for name, values in states[0]["model"].items())


def test_a_cosine_run_gets_no_more_epochs(tmp_path):
    optim = {"schedule": "cosine", "warm_up": 1}
    finished = train(recipe(optim, epochs=2), tmp_path, CPU)
    with pytest.raises(UserError, match=r"\(changed: epochs\)"):
        train(recipe(optim, epochs=3), tmp_path, CPU, resume=True)
    assert train(recipe(optim, epochs=2), tmp_path, CPU, resume=True) == finished


@pytest.mark.slow
def test_a_run_that_warmed_up_gets_more_epochs(tmp_path):
    optim = {"learning_rate": 1e-2, "schedule": "step", "step_epochs": 2, "decay": 0.5, "warm_up": 1.0}
    longer, whole = tmp_path / "longer", tmp_path / "whole"
    train(recipe(optim, epochs=2), longer, CPU)
    result = train(recipe(optim, epochs=4), longer, CPU, resume=True)
    assert result["metrics"] == train(recipe(optim, epochs=4), whole, CPU)["metrics"]


def test_a_floor_above_the_rate_would_raise_it_and_is_refused(tmp_path):
    with pytest.raises(UserError, match=r"floor must not be above learning_rate, 0\.0001, got 0\.001"):
        train(recipe({"learning_rate": 1e-4, "floor": 1e-3}), tmp_path / "run", CPU)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": "lion"}, "recipe.optim.name: expected one of"),
        ({"schedule": "linear"}, "recipe.optim.schedule: expected one of"),
        ({"clip": -1}, "clip must not be negative"),
        ({"warm_up": -1}, "warm_up must not be negative"),
        ({"average": 1.0}, r"average must lie in \[0, 1\)"),
        ({"momentum": -0.1}, r"momentum must lie in \[0, 1\)"),
        ({"step_epochs": 0}, "step_epochs must be positive"),
        ({"decay": 1e9}, "decay multiplies the learning rate"),
    ],
)
def test_settings_that_cannot_train_are_refused(changes, message):
    with pytest.raises(UserError, match=message):
        recipe(changes)


@pytest.mark.parametrize("technique", [{"annealing": {"r_max": 2}}, {"pruning": {}}])
def test_techniques_that_change_weights_at_once_have_no_average(technique):
    with pytest.raises(UserError, match="average excludes annealing and pruning"):
        recipe({"average": 0.9}, **technique)
