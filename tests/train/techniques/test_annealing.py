import json
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file

from torchcaps.core import UserError
from torchcaps.data import write_twin
from torchcaps.models import create_model
from torchcaps.routing import iterations_of
from torchcaps.train import Evaluation, Machine, load_recipe, load_run, train
from torchcaps.train.techniques import AnnealedTraining
from torchcaps.train.techniques.annealing import Annealer, Annealing, Decision

from refusal import REFUSED
from small_runs import Killer, assert_same_weights, saved_rows, small_recipe

CPU = Machine(device="cpu")


def recipe(**changes):
    annealing = {"r0": 1, "r_max": 3, "step": 1, "patience": 1}
    return small_recipe(**{"epochs": 30, "annealing": annealing, **changes})


def transcription(losses, r0, r_max, step, patience):
    """Algorithm 3 line by line; (k, r) after each evaluation, and the best pair at the end."""
    r, k = r0, 0
    best_loss, best_epoch, r_of = {0: math.inf}, {0: 0}, {0: r0}
    seen = []
    for e, loss in enumerate(losses):
        if not r <= r_max:
            break
        if loss >= best_loss[k] and e - best_epoch[k] >= patience:
            k, r = k + 1, r + step
            r_of[k], best_loss[k], best_epoch[k] = r, math.inf, 0
        elif loss < best_loss[k]:
            best_loss[k], best_epoch[k] = loss, e
        seen.append((k, r if r <= r_max else None))
    winner = min(best_loss, key=lambda key: best_loss[key])
    return seen, (best_loss[winner], r_of[winner])


@given(
    losses=st.lists(st.floats(0, 1), min_size=1, max_size=60),
    r0=st.integers(1, 3),
    more=st.integers(0, 6),
    step=st.integers(1, 3),
    patience=st.integers(1, 4),
)
def test_the_state_machine_is_the_algorithm_of_the_thesis(losses, r0, more, step, patience):
    annealer = Annealer(Annealing(r0=r0, r_max=r0 + more, step=step, patience=patience), ("a", "b"))
    seen, best = [], (math.inf, r0)
    for loss in losses:
        if annealer.is_done:
            break
        before = annealer.iterations
        if annealer.observe(loss) is Decision.IMPROVED:
            best = min(best, (loss, before), key=lambda pair: pair[0])
        seen.append((annealer.step, None if annealer.is_done else annealer.iterations))
    expected, winner = transcription(losses, r0, r0 + more, step, patience)
    assert seen == expected
    assert best == winner


def one_by_one(losses, r0, r_max, step, patience):
    """Loops over two layers; (iterations of a, of b, step whose weights were restored) of each evaluation."""
    losses, seen, found = iter(losses), [], []
    now = {"a": r0, "b": r0}
    for layer in ("a", "b"):
        sweep = range(r0 if layer == "a" else r0 + step, r_max + 1, step)
        for r in sweep:
            if found and r == sweep[0]:
                source = min(range(len(found)), key=lambda k: found[k][0])
                now = dict(found[source][1])
            else:
                source = max(len(found) - 1, 0)
            now[layer] = r
            best, waited = math.inf, 0
            while best == math.inf or waited < patience:
                loss = next(losses, None)
                if loss is None:
                    return seen
                seen.append((now["a"], now["b"], source))
                best, waited = (loss, 0) if loss < best else (best, waited + 1)
            found.append((best, dict(now)))
    return seen


@given(
    losses=st.lists(st.floats(0, 1), min_size=1, max_size=80),
    r0=st.integers(1, 3),
    more=st.integers(0, 4),
    step=st.integers(1, 3),
    patience=st.integers(1, 3),
)
def test_layers_take_turns_when_annealed_one_by_one(losses, r0, more, step, patience):
    settings = Annealing(r0=r0, r_max=r0 + more, step=step, patience=patience, order="one_by_one")
    annealer, seen = Annealer(settings, ("a", "b")), []
    for loss in losses:
        if annealer.is_done:
            break
        seen.append((annealer.rounds["a"], annealer.rounds["b"], annealer.source))
        annealer.observe(loss)
    assert seen == one_by_one(losses, r0, r0 + more, step, patience)


@given(losses=st.lists(st.floats(0, 1), min_size=1, max_size=40), cut=st.integers(0, 40))
def test_an_annealer_goes_on_from_its_state(losses, cut):
    settings = Annealing(r_max=3, patience=1, order="one_by_one")
    whole, part = Annealer(settings, ("a", "b")), Annealer(settings, ("a", "b"))
    for number, loss in enumerate(losses):
        if whole.is_done:
            break
        if number == cut:
            part = part.restored(json.loads(json.dumps(part.state())))
        assert whole.observe(loss) is part.observe(loss)
        assert whole.state() == part.state()


def test_a_restored_technique_routes_as_often_as_before():
    settings = Annealing(r_max=5, patience=1)
    before, after = (AnnealedTraining(settings, create_model("gamma_capsnet_tiny_test")) for _ in range(2))
    for loss in (1.0, 1.0, 0.9, 0.9):  # two steps
        before.annealer.observe(loss)
    after.restore(json.loads(json.dumps(before.state())))
    assert list(iterations_of(after._network).values()) == [3, 3]


@pytest.mark.slow
def test_a_run_ends_with_the_pair_of_lowest_loss(tmp_path):
    result = train(recipe(), tmp_path, CPU)
    rows = saved_rows(tmp_path)
    assert sorted({row["iterations"] for row in rows}) == [1, 2, 3]
    assert [step["iterations"] for step in result["annealing"]] == [1, 2, 3]
    assert result["metrics"]["val_loss"] == pytest.approx(min(step["loss"] for step in result["annealing"]))
    assert len(list(tmp_path.glob("step-*.safetensors"))) == 3
    winner = min(result["annealing"], key=lambda step: step["loss"])
    assert winner["test_accuracy"] == result["metrics"]["test_accuracy"]
    assert winner["test_loss"] == result["metrics"]["test_loss"]
    run = load_run(tmp_path)
    assert list(iterations_of(run.model).values()) == [result["metrics"]["iterations"]]


def test_a_step_starts_from_the_best_weights_of_the_last(tmp_path):
    """With a rate of zero nothing is learnt, so every step must hold the initial weights."""
    train(recipe(optim={"learning_rate": 1e-30}), tmp_path, CPU)
    first, *others = [load_file(path) for path in sorted(tmp_path.glob("step-*.safetensors"))]
    assert others
    for other in others:
        assert all(torch.allclose(first[name], other[name]) for name in other)


def test_a_step_goes_on_from_what_the_step_before_learnt(tmp_path, monkeypatch):
    """Every step is best after an epoch of learning, but the last, which is best before it."""
    # epochs 0 and 1, the trial of step 1, epochs 2 and 3, the trial of step 2, epoch 4; then the tests
    losses = iter([1.0, 1.0, 0.9, 0.8, 0.8, 0.7, 0.7])

    def evaluate(*_, **__):
        return Evaluation(next(losses, 0.5), {"accuracy": 0.5})

    monkeypatch.setattr("torchcaps.train.loop.session.evaluate", evaluate)
    found = train(recipe(annealing={"r_max": 3, "patience": 1}), tmp_path, CPU)
    assert [step["epoch"] for step in found["annealing"]] == [0, 2, 2]
    first, second, third = (load_file(tmp_path / f"step-{number}.safetensors") for number in range(3))
    assert not any(torch.equal(first[name], second[name]) for name in first)
    assert all(torch.equal(second[name], third[name]) for name in second)


@pytest.mark.slow
def test_layers_annealed_one_by_one_end_with_a_number_each(tmp_path, monkeypatch):
    monkeypatch.setattr("torchcaps.train.loop.kept._SECONDS_BETWEEN_CHECKPOINTS", 0.0)
    model = {"name": "gamma_capsnet_tiny_test", "image_size": 28, "num_classes": 10, "decoder": "none"}
    settings = recipe(model=model, annealing={"r_max": 2, "patience": 1, "order": "one_by_one"}, epochs=6)
    whole = train(settings, tmp_path / "whole", CPU)
    assert [len(step["iterations"]) for step in whole["annealing"]] == [2] * len(whole["annealing"])
    run = load_run(tmp_path / "whole")
    assert iterations_of(run.model) == whole["metrics"]["iterations"]
    with pytest.raises(KeyboardInterrupt):
        train(settings, tmp_path / "cut", CPU, watcher=Killer(3))
    assert train(settings, tmp_path / "cut", CPU, resume=True)["annealing"] == whole["annealing"]


@pytest.mark.parametrize("optimizer", ["reset", "keep"])
@pytest.mark.slow
def test_a_run_killed_within_a_step_resumes_exactly(optimizer, tmp_path, monkeypatch):
    monkeypatch.setattr("torchcaps.train.loop.kept._SECONDS_BETWEEN_CHECKPOINTS", 0.0)
    settings = recipe(annealing={"r0": 1, "r_max": 3, "patience": 2, "optimizer": optimizer})
    whole = train(settings, tmp_path / "whole", CPU)
    for epochs in (2, whole["metrics"]["epochs"] - 2):
        with pytest.raises(KeyboardInterrupt):
            train(settings, tmp_path / "cut", CPU, resume=True, watcher=Killer(epochs - 1))
    cut = train(settings, tmp_path / "cut", CPU, resume=True)
    assert cut["metrics"] == whole["metrics"]
    for name in ("weights.safetensors", "step-2.safetensors"):
        assert_same_weights(tmp_path / "whole" / name, tmp_path / "cut" / name)


@pytest.mark.parametrize("optimizer", ["reset", "keep"])
def test_a_step_begins_with_or_without_the_moments_of_the_last(optimizer, tmp_path):
    settings = {"r_max": 2, "patience": 1, "optimizer": optimizer}
    # the first epoch cannot be bettered, so the second ends the step
    train(recipe(annealing=settings, optim={"learning_rate": 1e-30}, epochs=2), tmp_path, CPU)
    state = torch.load(tmp_path / "last.ckpt", weights_only=True)
    assert state["technique"]["step"] == 1
    moments = [values["exp_avg"] for values in state["optimizer"]["state"].values()]
    assert any(bool(moment.any()) for moment in moments) == (optimizer == "keep")


def test_restored_weights_may_be_best_with_more_iterations_before_they_learn_on(tmp_path, monkeypatch):
    by_iterations = {1: 1.0, 2: 0.5, 3: 0.7}

    def evaluate(model, *_, **__):
        (iterations,) = iterations_of(model).values()
        return Evaluation(by_iterations[iterations], {"accuracy": 0.5})

    monkeypatch.setattr("torchcaps.train.loop.session.evaluate", evaluate)
    result = train(recipe(annealing={"r_max": 3, "patience": 1}, epochs=3), tmp_path, CPU)
    found = result["metrics"]
    assert [step["test_loss"] for step in result["annealing"]] == [1.0, 0.5, 0.7]  # each with its iterations
    assert (found["val_loss"], found["iterations"], found["best_epoch"]) == (0.5, 2, 0)
    assert found["test_loss"] == 0.5  # with the iterations of the best, not the 3 it stopped at
    assert_same_weights(tmp_path / "step-0.safetensors", tmp_path)


def test_weights_that_break_with_more_iterations_may_recover_while_they_learn_on(tmp_path, monkeypatch):
    losses = iter([1.0, 1.0, math.nan, 0.8, 0.9, 0.8])  # two epochs, the trial, two epochs, a test

    def evaluate(*_, **__):
        return Evaluation(next(losses, 0.7), {"accuracy": 0.5})

    monkeypatch.setattr("torchcaps.train.loop.session.evaluate", evaluate)
    found = train(recipe(annealing={"r_max": 2, "patience": 1}), tmp_path, CPU)
    assert [step["loss"] for step in found["annealing"]] == [1.0, 0.8]
    assert (found["metrics"]["val_loss"], found["metrics"]["iterations"]) == (0.8, 2)


def test_the_packaged_recipe_runs_to_the_end_in_a_reduced_form(tmp_path):
    write_twin("fashion_mnist", tmp_path, 100)
    smaller = ("data.limit=80", "data.validation=0.25", "batch_size=20", "model.stem_channels=8")
    shorter = ("annealing.r_max=2", "annealing.patience=1", "epochs=12", "optim.learning_rate=1e-30")
    result = train(
        load_recipe("fashion_mnist/annealed_small", (*smaller, *shorter)),
        tmp_path / "run",
        Machine(device="cpu", data_dir=tmp_path),
    )
    assert [step["iterations"] for step in result["annealing"]] == [1, 2]
    assert result["metrics"]["epochs"] < 12  # annealing ended, not the epochs


@pytest.mark.parametrize("routing", ["em", "scaled_distance"])
def test_any_iterative_routing_anneals(routing, tmp_path):
    model = {**recipe().model, "routing": routing}
    still = {"learning_rate": 1e-30}  # the loss does not fall, so that each step lasts its patience
    result = train(recipe(model=model, optim=still, annealing={"r_max": 2, "patience": 1}), tmp_path, CPU)
    assert [step["iterations"] for step in result["annealing"]] == [1, 2]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"annealing": {"r0": 5, "r_max": 3}}, "more than r_max"),
        ({"annealing": {"step": 0}}, "annealing.step must be at least 1"),
        ({"annealing": {"patience": 0}}, "annealing.patience must be at least 1"),
        ({"annealing": {"r0": 0}}, "annealing.r0 must be at least 1"),
        ({"annealing": {"layers": "none*"}}, "none is named 'none"),
        ({"annealing": {"optimizer": "lose"}}, "annealing.optimizer"),
        (
            {"model": {"name": "dr_capsnet_tiny_test", "routing": "self_attention"}},
            "needs a routing with iterations",
        ),
        ({"patience": 3}, "exclude each other"),
    ],
)
def test_impossible_settings_are_errors_when_the_recipe_is_loaded(changes, message):
    with pytest.raises(REFUSED, match=message):
        recipe(**changes)


def test_errors_are_the_users():
    with pytest.raises(UserError, match="more than r_max"):
        Annealing(r0=5, r_max=3)
