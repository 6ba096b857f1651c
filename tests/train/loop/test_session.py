import pytest
import torch

from torchcaps.core import UserError
from torchcaps.data import write_twin
from torchcaps.models import build_model
from torchcaps.train import Evaluation, Machine, train
from torchcaps.train.loop import Session
from torchcaps.train.machine import launch
from torchcaps.train.recipe import build

from accuracy import assert_as_accurate_as
from small_runs import DIGITS, assert_same_weights, small_recipe


def test_every_epoch_draws_anew_and_can_be_repeated():
    recipe = small_recipe(data={**DIGITS, "limit": 100})
    session = Session(launch(Machine(device="cpu")), recipe, None)

    def drawn(epoch):
        order = torch.cat(list(session.epoch(epoch)))
        assert len(set(order.tolist())) == 80  # each image once
        return order.tolist(), session.step.random.initial_seed(), torch.initial_seed()

    first, second = drawn(0), drawn(1)
    assert all(one != other for one, other in zip(first, second, strict=True))  # order, augmentation, layers
    assert drawn(0) == first


def test_the_loss_of_an_epoch_is_the_mean_over_its_steps(monkeypatch):
    session, losses = Session(launch(Machine(device="cpu")), small_recipe(), None), []

    def backward(indices, original=session.step.backward):
        losses.append(original(indices))
        return losses[-1]

    monkeypatch.setattr(session.step, "backward", backward)
    for epoch in (0, 1):
        for indices in session.epoch(epoch):
            session.step(indices)
    assert session.step.mean_loss() == pytest.approx(float(losses[2] + losses[3]) / 2)  # of the last epoch


def test_all_processes_go_by_the_evaluation_of_the_first(monkeypatch):
    """Each has batch statistics of its own in its average: the losses differ, the decisions must not."""
    session, first = Session(launch(Machine(device="cpu")), small_recipe(), None), Evaluation(0.5, {})
    monkeypatch.setattr(session.fabric, "broadcast", lambda found: first)
    assert session.evaluate(session.splits.validation) is first


def test_a_step_that_is_bad_in_one_process_is_bad_in_all(monkeypatch):
    session = Session(launch(Machine(device="cpu")), small_recipe(), None)
    assert session.step.first_bad_step() is None
    elsewhere = {"min": torch.tensor(3.0)}
    monkeypatch.setattr(session.fabric, "all_reduce", lambda first, reduce_op: elsewhere[reduce_op])
    assert session.step.first_bad_step() == 3


@pytest.mark.slow
def test_images_that_stay_in_files_train_the_same_network(tmp_path, monkeypatch):
    write_twin("folder", tmp_path / "images", 40)
    values = {
        "model": {
            "name": "dr_capsnet_tiny_test",
            "in_channels": 3,
            "image_size": 20,
            "num_classes": 3,
            "decoder": "none",
        },
        "data": {"name": f"folder:{tmp_path / 'images'}", "validation": 0.25, "augment": {"shift": 2}},
        "batch_size": 8,
        "epochs": 2,
    }
    settings, machine = build(values), Machine(device="cpu")
    expected = train(settings, tmp_path / "memory", machine)
    monkeypatch.setattr("torchcaps.data.folders.picture.MOST_BYTES_IN_MEMORY", 1000)
    session = Session(launch(machine), settings, None)
    assert not session.splits.train.is_in_memory
    assert train(settings, tmp_path / "files", machine)["metrics"] == expected["metrics"]
    assert_same_weights(tmp_path / "memory", tmp_path / "files")


def test_gradients_with_channels_last_are_as_accurate_as_plain_ones():
    recipe = small_recipe(
        model={"name": "efficient_capsnet_tiny_test", "image_size": 28, "num_classes": 10},
        data={**DIGITS, "limit": 80},
        loss={"reconstruction": 0.0005},
        batch_size=64,
    )
    session = Session(launch(Machine(device="cpu")), recipe, None)
    start = {name: value.clone() for name, value in session.network.state_dict().items()}
    assert session.network.stem[1][0].weight.is_contiguous(memory_format=torch.channels_last)
    (indices,) = session.epoch(0)
    session.step.backward(indices)
    images, inputs, labels = session.pipeline.for_training(session.splits.train, indices, session.step.random)

    def plain_gradients(dtype):
        network = build_model(session.recipe.model).to(dtype).train()
        network.load_state_dict(start)
        session.objective(network(inputs.to(dtype), labels), labels, images.to(dtype)).backward()
        return [weight.grad for weight in network.parameters()]

    found = [weight.grad for weight in session.network.parameters()]
    for mine, plain, exact in zip(found, *map(plain_gradients, (torch.float32, torch.float64)), strict=True):
        assert_as_accurate_as(mine, plain, exact)


POSES = {
    "model": {"name": "pose_mlp_tiny_test", "image_size": 16, "num_classes": 2},
    "data": {"name": "synthetic_cube_tetrahedron", "limit": 40, "validation": 0.2, "fresh": True},
    "batch_size": 8,
    "epochs": 3,
}


def test_fresh_examples_are_other_ones_in_every_epoch_and_validation_stays():
    session = Session(launch(Machine(device="cpu")), build(POSES), None)
    kept = session.splits.validation.images.clone()

    def shown(epoch):
        list(session.epoch(epoch))
        return session.splits.train.images.clone()

    first, second = shown(0), shown(1)
    assert not torch.equal(first, second)
    assert torch.equal(shown(0), first)
    assert torch.equal(session.splits.validation.images, kept)


def test_a_run_with_fresh_examples_continues_to_the_same_weights(tmp_path):
    machine = Machine(device="cpu")
    train(build(POSES), tmp_path / "whole", machine)
    train(build({**POSES, "epochs": 2}), tmp_path / "parts", machine)
    train(build(POSES), tmp_path / "parts", machine, resume=True)
    assert_same_weights(tmp_path / "whole", tmp_path / "parts")


@pytest.mark.gpu
def test_a_captured_step_sees_fresh_examples():
    losses = []
    for capture in (True, False):
        session = Session(launch(Machine(device="cuda")), build(POSES), None, capture=capture)
        for epoch in range(3):
            for indices in session.epoch(epoch):
                session.step(indices)
                session.advance()
            losses.append(session.step.mean_loss())
    assert losses[:3] == pytest.approx(losses[3:], rel=1e-3)


@pytest.mark.gpu
def test_a_captured_step_averages_the_weights():
    averages = []
    for capture in (True, False):
        recipe = build({**POSES, "optim": {"average": 0.9}})
        session = Session(launch(Machine(device="cuda")), recipe, None, capture=capture)
        for epoch in range(3):
            for indices in session.epoch(epoch):
                session.step(indices)
                session.advance()
        averages.append(session.weights.state()["average"])
    torch.testing.assert_close(*averages, rtol=1e-3, atol=1e-4)
    assert averages[0]["n_averaged"] > 4  # more than the steps before the capture


def test_stored_examples_are_refused_where_fresh_ones_are_wanted(tmp_path):
    recipe = small_recipe(data={**DIGITS, "fresh": True})
    with pytest.raises(UserError, match=r"recipe\.data\.fresh: the examples of synthetic_mnist are stored"):
        train(recipe, tmp_path / "run", Machine(device="cpu"))
    assert not (tmp_path / "run").exists()
