import json
import os
import shutil
import signal
import subprocess
import sys
import time

import pytest
import torch
from safetensors.torch import load_file

from torchcaps.core import Routed, UserError
from torchcaps.data import write_twin
from torchcaps.losses import coupling_entropy_loss
from torchcaps.train import (
    DivergedError,
    Evaluation,
    Machine,
    evaluate_run,
    load_labelled,
    load_run,
    load_split,
    train,
)
from torchcaps.train.loop import Session
from torchcaps.train.loop.divergence import broken_step
from torchcaps.train.loop.kept import KeptRun
from torchcaps.train.machine import launch
from torchcaps.train.recipe import recipe_as_yaml

from refusal import REFUSED
from small_runs import MODEL, SHIFTED_DIGITS, assert_same_weights, saved_rows, small_recipe, timeless

CPU = Machine(device="cpu")
DECODER = {"model": {**MODEL, "decoder": "fc"}, "loss": {"reconstruction": 0.0005}}


def recipe(**changes):
    optim = {"learning_rate": 3e-3, "decay": 0.9}
    return small_recipe(**{"data": SHIFTED_DIGITS, "optim": optim, **changes})


def weights(folder):
    return load_file(folder / "weights.safetensors")


def test_a_run_leaves_its_files(tmp_path):
    result = train(recipe(**DECODER), tmp_path, CPU)
    assert {path.name for path in tmp_path.iterdir()} == {
        "recipe.json",
        "recipe.yaml",
        "data.json",
        "metrics.jsonl",
        "weights.safetensors",
        "last.ckpt",
        "result.json",
    }
    assert json.loads((tmp_path / "result.json").read_text()) == result
    assert result["seed"] == 42
    assert result["versions"]["torch"] == torch.__version__
    rows = saved_rows(tmp_path)
    assert [row["epoch"] for row in rows] == [0, 1, 2]
    assert rows[1]["learning_rate"] == pytest.approx(3e-3 * 0.9)
    best = min(rows, key=lambda row: row["val_loss"])
    assert result["metrics"]["best_epoch"] == best["epoch"]


@pytest.mark.slow
def test_it_learns(tmp_path):
    settings = recipe(
        data={"name": "synthetic_mnist", "validation": 0.1},
        model={**DECODER["model"], "stem_channels": 16},
        loss=DECODER["loss"],
        epochs=8,
    )
    assert train(settings, tmp_path, CPU)["metrics"]["test_accuracy"] > 0.8


def test_the_same_seed_gives_the_same_weights_and_another_seed_others(tmp_path):
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        train(recipe(seed=seed, epochs=1, **DECODER), tmp_path / name, CPU)
    assert_same_weights(tmp_path / "a", tmp_path / "b")
    assert not torch.equal(weights(tmp_path / "a")["stem.weight"], weights(tmp_path / "c")["stem.weight"])


SHORT = {
    "data": {"name": "synthetic_mnist", "limit": 20, "validation": 0.2},
    "epochs": 50,
}


def script_losses(monkeypatch, *losses):
    """The losses that evaluations find from now on; the weights that they see."""
    left, seen = iter(losses), []

    def evaluate(model, *_, **__):
        seen.append(next(model.parameters()).detach().clone())
        return Evaluation(next(left), {"accuracy": 0.1})

    monkeypatch.setattr("torchcaps.train.loop.session.evaluate", evaluate)
    return seen


@pytest.mark.parametrize(("pruning", "kept", "loss"), [(None, 2, 1.0), ({"min_metric": 1.0}, 4, 1.25)])
def test_training_stops_when_patience_is_lost(tmp_path, monkeypatch, pruning, kept, loss):
    """Kept are the weights of the lowest loss; those of the last epoch where the run prunes."""
    seen = script_losses(monkeypatch, 3.0, 2.0, 1.0, 1.5, 1.25, 0.5)
    result = train(recipe(**SHORT, patience=2, pruning=pruning), tmp_path, CPU)
    assert result["metrics"]["epochs"] == 5
    assert load_run(tmp_path).epoch == kept
    assert torch.equal(seen[5], seen[kept])  # the test images see what is kept
    assert (result["metrics"]["best_epoch"], result["metrics"]["val_loss"]) == (kept, loss)


@pytest.mark.parametrize(("metric", "kept"), [("loss", 1), ("accuracy", 2)])
def test_the_recipe_says_which_metric_decides(metric, kept, tmp_path, monkeypatch):
    found = [
        Evaluation(loss, {"accuracy": accuracy}) for loss, accuracy in ((3.0, 0.1), (1.0, 0.5), (2.0, 0.9))
    ]
    left = iter([*found, found[kept]])
    monkeypatch.setattr("torchcaps.train.loop.session.evaluate", lambda *_, **__: next(left))
    result = train(recipe(**{**SHORT, "epochs": 3}, select_by=metric), tmp_path, CPU)
    assert load_run(tmp_path).epoch == result["metrics"]["best_epoch"] == kept
    assert result["metrics"]["val_accuracy"] == found[kept].metrics["accuracy"]


def test_the_name_of_a_recipe_is_no_recipe(tmp_path):
    with pytest.raises(REFUSED, match="Recipe"):
        train("mnist/dr_capsnet", tmp_path, CPU)


def test_of_epochs_that_are_equally_good_the_one_of_the_lowest_loss_is_kept(tmp_path, monkeypatch):
    """A segmentation finds nothing at first: its Dice stays 0 while its loss falls, and patience waits."""
    found = [Evaluation(loss, {"accuracy": 0.0}) for loss in (3.0, 2.0, 1.0, 1.5, 1.2)]
    left = iter([*found, found[2]])
    monkeypatch.setattr("torchcaps.train.loop.session.evaluate", lambda *_, **__: next(left))
    result = train(recipe(**SHORT, select_by="accuracy", patience=2), tmp_path, CPU)
    assert result["metrics"]["epochs"] == 5
    assert load_run(tmp_path).epoch == result["metrics"]["best_epoch"] == 2


def test_an_annealing_step_starts_from_the_best_weights_of_the_step_before(tmp_path, monkeypatch):
    seen = script_losses(monkeypatch, 2.0, 3.0, 1.9, 1.5, 2.5, 1.4, 2.0, *[0.5] * 4)
    annealing = {"r0": 1, "r_max": 3, "step": 1, "patience": 1}
    result = train(recipe(**SHORT, annealing=annealing), tmp_path, CPU)
    assert torch.equal(seen[2], seen[0])
    assert torch.equal(seen[5], seen[3])
    assert not torch.equal(seen[3], seen[0])
    assert [step["loss"] for step in result["annealing"]] == [2.0, 1.5, 1.4]
    # the last step is best as it starts, with the weights of epoch 2
    assert [step["epoch"] for step in result["annealing"]] == [0, 2, 2]
    assert result["metrics"]["iterations"] == 3
    assert torch.equal(weights(tmp_path)["stem.weight"], seen[3])


def test_an_interrupted_run_is_continued_only_when_asked(tmp_path):
    settings = recipe(epochs=1)
    first = train(settings, tmp_path, CPU)
    with pytest.raises(UserError, match="already holds a run; continue it with --resume"):
        train(settings, tmp_path, CPU)
    assert train(settings, tmp_path, CPU, resume=True) == first
    with pytest.raises(UserError, match=r"another recipe \(changed: batch_size, seed\).*start_from="):
        train(recipe(epochs=1, batch_size=8, seed=1), tmp_path, CPU, resume=True)
    with pytest.raises(UserError, match=r"\(changed: epochs, seed\)"):
        train(recipe(epochs=2, seed=1), tmp_path, CPU, resume=True)


def test_a_run_is_not_continued_in_another_precision(tmp_path):
    train(recipe(epochs=1), tmp_path, CPU)
    with pytest.raises(UserError, match="trained in precision 32, not bf16; continue it with --precision 32"):
        train(recipe(epochs=2), tmp_path, Machine(device="cpu", precision="bf16"), resume=True)
    assert train(recipe(epochs=2), tmp_path, CPU, resume=True)["metrics"]["epochs"] == 2


def test_a_run_is_not_continued_when_other_images_validate(tmp_path):
    write_twin("folder", tmp_path / "pets", 24)
    model = {**MODEL, "in_channels": 3, "num_classes": 3}
    settings = {"model": model, "data": {"name": f"folder:{tmp_path / 'pets'}"}, "batch_size": 4}
    train(recipe(**settings, epochs=1), tmp_path / "run", CPU)
    shutil.copytree(tmp_path / "pets/test", tmp_path / "pets/val")
    with pytest.raises(UserError, match=r"trained on 23 images and validated on 1; there are now 24 and 24"):
        train(recipe(**settings, epochs=2), tmp_path / "run", CPU, resume=True)
    shutil.rmtree(tmp_path / "pets/val")
    assert train(recipe(**settings, epochs=2), tmp_path / "run", CPU, resume=True)["metrics"]["epochs"] == 2


@pytest.fixture(scope="module")
def command(tmp_path_factory):
    """A run of some seconds as a shell command, with its recipe on disk."""
    path = tmp_path_factory.mktemp("recipe") / "recipe.yaml"
    path.write_text(recipe_as_yaml(recipe(epochs=12, **DECODER)))
    return [sys.executable, "-m", "torchcaps", "train", str(path), "--device", "cpu", "--json"]


def epochs_done(folder):
    path = folder / "metrics.jsonl"
    return len(path.read_text().splitlines()) if path.is_file() else 0


@pytest.mark.slow
def test_a_killed_run_resumes_to_the_same_bits(command, tmp_path):
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    process = subprocess.Popen([*command, "--out", str(killed)], env=environment, stdout=subprocess.DEVNULL)
    while epochs_done(killed) < 3 and process.poll() is None:
        time.sleep(0.005)  # waits for another process, not for a duration
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not (killed / "result.json").is_file()
    resumed = [*command, "--out", str(killed), "--resume"]
    subprocess.run(resumed, env=environment, check=True, stdout=subprocess.DEVNULL)
    train(recipe(epochs=12, **DECODER), whole, CPU)
    assert_same_weights(killed, whole)
    assert torch.load(killed / "last.ckpt", weights_only=True)["progress"]["next_epoch"] == 12
    assert timeless(killed) == timeless(whole)


@pytest.mark.slow
def test_two_processes_give_the_losses_of_one(tmp_path):
    path = tmp_path / "recipe.yaml"
    path.write_text(recipe_as_yaml(recipe(epochs=2)))
    arguments = ["train", str(path), "--device", "cpu", "--json"]
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m", "torchcaps"]
    full = [sys.executable, *launcher, *arguments, "--devices", "2", "--out", str(tmp_path / "two")]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(full, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["devices"] == 2  # one process speaks for both
    assert train(recipe(epochs=2), tmp_path / "one", CPU)["devices"] == 1
    for first, second in zip(saved_rows(tmp_path / "one"), saved_rows(tmp_path / "two"), strict=True):
        assert second["train_loss"] == pytest.approx(first["train_loss"], abs=1e-5)
        assert second["val_loss"] == pytest.approx(first["val_loss"], abs=1e-5)


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        (
            "triplet",
            {
                "model": {"name": "descriptor_tiny_test"},
                "data": {"name": "synthetic_places", "validation": 0.25, "images_per_place": 2},
            },
        ),
        (
            "coupling_entropy",
            {
                "model": {**MODEL, "routing": {"name": "dynamic", "gradient": "full"}},
                "loss": {"coupling_entropy": 0.1},
            },
        ),
    ],
)
def test_a_loss_that_compares_images_is_not_shared_by_processes(name, changes, tmp_path):
    with pytest.raises(UserError, match=f"{name} compares the images of a batch.* train with one device"):
        train(recipe(**changes), tmp_path / "run", Machine(device="cpu", devices=2))
    assert not (tmp_path / "run").exists()


ONE_BAD_SHARE = """
import os, sys
from pathlib import Path
from torchcaps.train import DivergedError, Machine, Objective, load_recipe, train

loss_of, calls = Objective.__call__, []

def broken(self, *arguments, **settings):
    calls.append(len(calls))
    factor = float("nan") if os.environ["RANK"] == "1" and len(calls) == 2 else 1.0
    return factor * loss_of(self, *arguments, **settings)

Objective.__call__ = broken
try:
    train(load_recipe(sys.argv[1]), Path(sys.argv[2]), Machine(device="cpu", devices=2))
except DivergedError as error:
    sys.stderr.write(f"{error}\\n")
"""


@pytest.mark.slow
def test_a_loss_that_is_nan_in_one_of_two_processes_ends_both(tmp_path):
    path, script = tmp_path / "recipe.yaml", tmp_path / "script.py"
    path.write_text(recipe_as_yaml(recipe()))
    script.write_text(ONE_BAD_SHARE)
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    done = subprocess.run(
        [sys.executable, *launcher, str(script), str(path), str(tmp_path / "two")],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stderr.count("the loss is not finite in step 2 of epoch 1") == 2


@pytest.mark.slow
def test_processes_that_train_together_stop_together(tmp_path):
    path, out = tmp_path / "recipe.yaml", tmp_path / "two"
    path.write_text(recipe_as_yaml(recipe(epochs=500)))
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m", "torchcaps"]
    arguments = ["train", str(path), "--device", "cpu", "--json", "--devices", "2", "--out", str(out)]
    process = subprocess.Popen(
        [sys.executable, *launcher, *arguments],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    while epochs_done(out) < 2 and process.poll() is None:
        time.sleep(0.005)
    process.send_signal(signal.SIGTERM)  # passed on to both
    _, said = process.communicate(timeout=25)  # before torchrun would kill them
    assert said.count("torchcaps: stopped; go on after the last saved epoch: torchcaps train") == 1
    assert "[rank" not in said  # what a process that fails is quoted with
    state = torch.load(out / "last.ckpt", weights_only=True)
    assert state["progress"]["next_epoch"] == epochs_done(out) < 500


def test_a_loss_that_turns_nan_names_step_and_layer_and_keeps_the_checkpoint(tmp_path, monkeypatch):
    from torchcaps.routing import DynamicRouting

    calls = []

    def broken(self, votes, activations):
        routed = original(self, votes, activations)
        calls.append(self.training and len(votes) == 16)
        if sum(calls) > 7:  # five steps an epoch: the third of the second, and every step of the replay
            return Routed(routed.poses * float("nan"), routed.activations * float("nan"), routed.coupling)
        return routed

    original = DynamicRouting.forward
    monkeypatch.setattr(DynamicRouting, "forward", broken)
    monkeypatch.setattr(DynamicRouting, "fuse", lambda *_, **__: "the fused kernel passes routing by")
    settings = recipe(
        model={**MODEL, "routing": {"name": "dynamic"}},
        data={"name": "synthetic_mnist", "limit": 100, "validation": 0.2},
    )
    with pytest.raises(
        DivergedError, match=r"step 3 of epoch 2.*output of layer 'classes.routing'"
    ) as caught:
        train(settings, tmp_path, CPU)
    assert "last.ckpt" in str(caught.value)
    state = torch.load(tmp_path / "last.ckpt", weights_only=True)
    assert state["progress"]["next_epoch"] == 1
    assert all(value.isfinite().all() for value in state["model"].values())


def test_too_large_a_batch_is_answered_with_one_that_fits(tmp_path, monkeypatch):
    from torchcaps.models import DRCapsNet

    def greedy(self, images, *arguments, **settings):
        if len(images) > 5:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 9 GiB. GPU 0 has too little")
        return original(self, images, *arguments, **settings)

    original = DRCapsNet.forward
    monkeypatch.setattr(DRCapsNet, "forward", greedy)
    with pytest.raises(UserError, match=r"a batch of 16 images of 1x28x28 .* batch_size=4 fits"):
        train(recipe(), tmp_path, CPU)


def test_a_validation_loss_that_is_not_finite_stops_the_run(tmp_path, monkeypatch):
    broken = Evaluation(float("nan"), {"accuracy": 0.1})
    monkeypatch.setattr("torchcaps.train.loop.session.evaluate", lambda *_, **__: broken)
    with pytest.raises(DivergedError, match="validation loss is not finite after epoch 1; no checkpoint"):
        train(recipe(), tmp_path, CPU)


def test_a_broken_gradient_is_found():
    from torchcaps.train.loop.divergence import find_non_finite

    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU(), torch.nn.Linear(2, 1))

    def steps():
        for _ in range(3):
            model.zero_grad()
            model(torch.ones(1, 2)).sum().backward()
            model[2].weight.grad[:] = float("inf")
            yield

    assert find_non_finite(model, steps()) == "the gradient of '2.weight'"


def test_steps_are_replayed_from_the_weights_that_the_recipe_names(tmp_path, monkeypatch):
    def find_start(name):
        return {"good": tmp_path / "good"}[name]

    monkeypatch.setattr("torchcaps.train.loop.divergence.find_non_finite", lambda model, steps: None)
    train(recipe(epochs=1), tmp_path / "good", CPU)
    session = Session(launch(CPU), recipe(start_from="good"), None, find_start=find_start)
    assert "step 1 of epoch 1" in str(broken_step(KeptRun(session, tmp_path, "32"), None, epoch=0, step=0))


def test_steps_are_replayed_up_to_the_broken_one_of_a_later_epoch(tmp_path, monkeypatch):
    """The last checkpoint may be epochs ago: the steps between are sound."""
    replayed = []

    def watch(model, steps):
        replayed.extend(1 for _ in steps)

    monkeypatch.setattr("torchcaps.train.loop.divergence.find_non_finite", watch)
    run = KeptRun(Session(launch(CPU), recipe(), None), tmp_path, "32")
    assert run.session.steps_per_epoch == 2
    words = str(broken_step(run, None, epoch=2, step=0))
    assert "step 1 of epoch 3" in words
    assert "did not reproduce it" in words
    assert len(replayed) == 2 + 2 + 1


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"batch_size": 33}, "batch_size 33 is more than the 32 training images; .*--set batch_size=32$"),
        (
            {"model": {"name": "dr_capsnet_tiny_test", "image_size": 28, "decoder": "none"}},
            "set model.num_classes=10",
        ),
        ({**DECODER, "loss": {"reconstruction": 0.0}}, "belong together.*set loss.reconstruction=0.0005"),
        ({"data": {"name": "mnits"}}, "did you mean mnist"),
    ],
)
def test_recipes_that_cannot_run_are_refused(changes, message, tmp_path):
    with pytest.raises(UserError, match=message):
        train(recipe(**changes), tmp_path, CPU)


def test_a_run_that_failed_at_once_does_not_stand_in_the_way_of_a_mended_recipe(tmp_path):
    wrong = recipe(model={**MODEL, "image_size": 40})
    with pytest.raises(UserError, match="takes images of 1x40x40"):
        train(wrong, tmp_path, CPU)
    train(recipe(epochs=1), tmp_path, CPU, resume=True)
    assert load_run(tmp_path).recipe == recipe(epochs=1)


@pytest.mark.parametrize(
    "machine", [{"device": "tpu"}, {"device": "cpu", "precision": "8"}, {"device": "mps"}]
)
def test_machines_that_do_not_exist_are_refused(machine, tmp_path, monkeypatch):
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    with pytest.raises(REFUSED, match=r"device must be|precision|no MPS device"):
        train(recipe(), tmp_path, Machine(**machine))


def test_bfloat16_trains(tmp_path):
    result = train(recipe(epochs=1), tmp_path, Machine(device="cpu", precision="bf16"))
    assert result["precision"] == "bf16"
    assert weights(tmp_path)["stem.weight"].dtype == torch.float32


@pytest.mark.compile
@pytest.mark.slow
def test_a_compiled_model_trains_to_the_same_losses(tmp_path):
    plain = train(recipe(epochs=1), tmp_path / "plain", CPU)["metrics"]
    compiled = train(recipe(epochs=1, compile=True), tmp_path / "compiled", CPU)["metrics"]
    assert compiled["val_loss"] == pytest.approx(plain["val_loss"], abs=1e-4)


def test_a_run_is_read_back(tmp_path):
    result = train(recipe(**DECODER), tmp_path, CPU)
    run = load_run(tmp_path)
    assert run.epoch == result["metrics"]["best_epoch"]
    report = evaluate_run(run)
    assert report["accuracy"] == pytest.approx(result["metrics"]["test_accuracy"])
    assert report["loss"] == pytest.approx(result["metrics"]["test_loss"], rel=1e-4)
    assert sum(map(sum, report["confusion"])) == report["images"]
    assert evaluate_run(run, "validation")["images"] == 8
    with pytest.raises(UserError, match="cannot be compared"):
        evaluate_run(run, data_name="synthetic_fashion_mnist")
    with pytest.raises(UserError, match="split must be"):
        evaluate_run(run, "all")


def test_other_images_are_made_ready_like_those_of_training(tmp_path):
    train(recipe(epochs=1), tmp_path, CPU)
    run = load_run(tmp_path)
    _, pipeline = load_split(run, "test", data_name="mnist5k")
    assert (pipeline.info.mean, pipeline.info.std) == (run.card.mean, run.card.std)


def test_a_run_that_is_not_there_is_told_the_recipe_that_would_make_it(tmp_path):
    with pytest.raises(UserError, match=r"holds no run .* torchcaps train mnist5k/dr_capsnet_small_types$"):
        load_run(tmp_path / "mnist5k-dr_capsnet_small_types")
    with pytest.raises(UserError, match=r"torchcaps train$"):
        load_run(tmp_path / "mine")


def test_damaged_runs_are_explained(tmp_path):
    with pytest.raises(UserError, match="holds no run"):
        load_run(tmp_path)
    train(recipe(epochs=1), tmp_path, CPU)
    (tmp_path / "result.json").unlink()
    checkpoint = tmp_path / "last.ckpt"
    checkpoint.write_bytes(checkpoint.read_bytes()[:1000])
    with pytest.raises(UserError, match=r"last.ckpt is damaged.*delete it to start this run anew"):
        train(recipe(epochs=1), tmp_path, CPU, resume=True)
    checkpoint.write_bytes(b"")
    with pytest.raises(UserError, match=r"last.ckpt is damaged \(\w"):
        train(recipe(epochs=1), tmp_path, CPU, resume=True)
    stored = tmp_path / "weights.safetensors"
    stored.write_bytes(stored.read_bytes()[:1000])
    with pytest.raises(UserError, match=r"weights.safetensors is damaged"):
        load_run(tmp_path)
    (tmp_path / "recipe.json").write_text("{")
    with pytest.raises(UserError, match=r"recipe.json is damaged"):
        load_run(tmp_path)


@pytest.mark.slow
def test_the_entropy_of_couplings_falls_when_it_is_part_of_the_loss(tmp_path):
    def entropy(weight):
        asked = recipe(
            data={"name": "synthetic_mnist", "limit": 100, "validation": 0.2},
            loss={"coupling_entropy": weight},
            keep_epochs=[1],
        )
        train(asked, tmp_path / str(weight), CPU)
        run = load_run(tmp_path / str(weight))
        data, pipeline = load_labelled(run, "validation")
        output = run.model(pipeline.for_evaluation(data.images).inputs, return_routing=True)
        return coupling_entropy_loss(output.layers[-1].routed.coupling, data.labels).item()

    assert entropy(30.0) < 0.8 * entropy(0.0)
    assert (tmp_path / "0.0" / "epoch-1.safetensors").is_file()


def test_couplings_that_do_not_learn_cannot_be_part_of_the_loss(tmp_path):
    model = {**MODEL, "routing": {"name": "dynamic", "gradient": "last"}}
    with pytest.raises(UserError, match="gradient=full"):
        train(recipe(model=model, loss={"coupling_entropy": 1.0}), tmp_path, CPU)
