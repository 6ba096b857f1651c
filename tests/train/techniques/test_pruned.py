import os
import subprocess
import sys
from dataclasses import replace

import pytest
import torch
from safetensors.torch import load_file

from torchcaps.core import METRICS, UserError
from torchcaps.prune import Cut, Lobster, Pull, count_sparsity, measure_size, shrink
from torchcaps.train import Evaluation, Machine, evaluate_run, load_run, train
from torchcaps.train.loop import Session
from torchcaps.train.machine import launch
from torchcaps.train.recipe import build, recipe_as_json, recipe_as_yaml
from torchcaps.train.techniques import PrunedTraining

from small_runs import Killer, assert_same_weights, saved_rows, small_recipe, timeless

CPU = Machine(device="cpu")


def recipe(pruning=None, **changes):
    pruning = {"strength": 1e-2} if pruning is None else pruning
    return small_recipe(**{"epochs": 4, "pruning": pruning, **changes})


@pytest.fixture(scope="module")
def pruned(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pruned")
    return folder, train(recipe(), folder, CPU)


def test_the_weights_of_the_last_epoch_are_kept_with_their_zeros(pruned):
    folder, result = pruned
    weights = load_file(folder / "weights.safetensors")
    zeros = sum(int((value == 0).sum()) for value in weights.values())
    size = sum(value.numel() for value in weights.values())
    metrics, last = result["metrics"], saved_rows(folder)[-1]
    assert zeros > 0
    assert metrics["parameters_left"] == size - zeros
    assert metrics["sparsity_total"] == last["sparsity_total"] == pytest.approx(zeros / size)
    assert metrics["sparsity"] == last["sparsity"] >= metrics["sparsity_total"]
    assert metrics["best_epoch"] == last["epoch"] == 3
    assert metrics["val_loss"] == last["val_loss"]
    assert metrics["search_evaluations"] == sum(row["search_evaluations"] for row in saved_rows(folder))
    run = load_run(folder)
    assert run.epoch == 3
    assert evaluate_run(run, "validation")["loss"] == pytest.approx(metrics["val_loss"], rel=1e-5)


def test_sparsity_never_falls(pruned):
    sparsities = [row["sparsity"] for row in saved_rows(pruned[0])]
    assert sparsities == sorted(sparsities)


def test_an_interrupted_run_ends_as_if_it_had_not_been(pruned, tmp_path, monkeypatch):
    monkeypatch.setattr("torchcaps.train.loop.kept._SECONDS_BETWEEN_CHECKPOINTS", 0.0)
    with pytest.raises(KeyboardInterrupt):
        train(recipe(), tmp_path, CPU, watcher=Killer(1))
    assert load_run(tmp_path).epoch == 1  # an unfinished run has weights too
    resumed = train(recipe(), tmp_path, CPU, resume=True)
    assert resumed["metrics"] == pruned[1]["metrics"]
    assert timeless(tmp_path) == timeless(pruned[0])
    assert_same_weights(tmp_path, pruned[0])


def test_a_run_without_pull_and_without_thresholds_is_the_run_without_pruning(tmp_path):
    idle = recipe({"strength": 0.0, "min_metric": 1.0}, epochs=1)
    plain = replace(idle, pruning=None)
    losses = [train(each, tmp_path / name, CPU) for name, each in (("idle", idle), ("plain", plain))]
    assert losses[0]["metrics"]["sparsity"] == 0
    assert losses[0]["metrics"]["val_loss"] == losses[1]["metrics"]["val_loss"]
    assert "sparsity" not in losses[1]["metrics"]


def found(loss, accuracy=0.4):
    return Evaluation(loss, {"accuracy": accuracy})


class Scripted:
    """A run whose evaluation looks at the weights alone."""

    def __init__(self, settings, loss):
        self.session, self.loss, self.sizes = Session(launch(CPU), settings, None), loss, []
        self.session.evaluate = self.evaluate
        self.pruner = self.session.technique
        assert isinstance(self.pruner, PrunedTraining)

    def after_epoch(self, loss=1.0, accuracy=0.4):
        return self.pruner.after_validation(self, found(loss, accuracy))

    def evaluate(self, examples):
        self.sizes.append(len(examples))
        return found(self.loss(self.session.network))

    def keep_if_best(self, epoch, validation):
        pytest.fail("a pruned run keeps its last weights")

    save_weights = use_weights = keep_if_best


def distance(network):
    """A loss that rises with every weight that is cut."""
    return 1.0 + 1e-3 * sum(int((parameter == 0).sum()) for parameter in network.parameters())


def test_the_tolerance_is_honoured():
    run = Scripted(recipe({"tolerance": 0.5}), distance)
    assert 1.48 <= run.after_epoch().loss <= 1.5  # 500 of 20,000 weights fit; twenty may stay undecided
    row = run.pruner.row()
    assert row["threshold"] > 0
    assert row["search_evaluations"] == len(run.sizes) - 1 == run.pruner.state()["evaluations"]
    strict = Scripted(recipe(), distance)
    assert strict.after_epoch().loss == 1.0
    assert strict.pruner.row()["sparsity"] == 0


def test_a_subset_is_searched_and_the_whole_is_validated():
    run = Scripted(recipe({"search_images": 5, "tolerance": 0.1}), distance)
    run.after_epoch()
    assert run.sizes[-1] == 8
    assert set(run.sizes[:-1]) == {5}
    assert run.pruner.row()["search_evaluations"] == len(run.sizes) - 1


def test_a_subset_is_spread_over_all_validation_images():
    """They may be ordered by class: of eight, the five at 0, 1.75, 3.5, 5.25 and 7 are searched, cut down."""
    seen = []

    class Watched(Scripted):
        def evaluate(self, examples):
            seen.append(examples.images)
            return super().evaluate(examples)

    run = Watched(recipe({"search_images": 5, "tolerance": 0.1}), distance)
    run.after_epoch()
    everything = run.session.splits.validation.images
    assert all(torch.equal(images, everything[[0, 1, 3, 5, 7]]) for images in seen[:-1])
    assert torch.equal(seen[-1], everything)


def test_a_search_starts_above_the_largest_threshold_found_before(monkeypatch):
    thresholds, starts = iter([0.4, 0.1, 0.0]), []

    def search(units, loss_of, *, limit, start, may_cut_all):
        starts.append(start)
        return Cut(next(thresholds), 0, 0.0, 1)

    monkeypatch.setattr("torchcaps.train.techniques.pruned.prune_to_loss", search)
    run = Scripted(recipe(), distance)
    for _ in range(3):
        run.after_epoch()
    assert starts == [0.0, 0.8, 0.8]


@pytest.mark.parametrize("settings", [{"min_metric": 0.5}, {"patience": 2}])
def test_pruning_waits_until_it_is_due(settings):
    run = Scripted(recipe({"tolerance": 1.0, **settings}), distance)
    for _ in range(2):
        assert run.after_epoch().loss == 1.0
    assert not run.sizes
    run.after_epoch(accuracy=0.6)
    assert run.sizes


def test_a_metric_that_should_be_small_is_waited_for_from_above():
    run, settings = Scripted(recipe(), distance), Lobster(min_metric=20.0, tolerance=1.0)
    run.pruner = PrunedTraining(settings, run.session.network, METRICS["rotation_error"])
    for angle, is_due in ((30.0, False), (20.0, True), (10.0, True)):
        run.sizes.clear()
        run.pruner.after_validation(run, Evaluation(1.0, {"rotation_error": angle}))
        assert bool(run.sizes) == is_due


def test_a_cut_may_be_judged_by_the_metric():
    """The loss does not see the cut; the accuracy loses a thousandth with each weight."""

    class Judged(Scripted):
        def evaluate(self, examples):
            self.sizes.append(len(examples))
            return found(1.0, accuracy=0.8 + 1.0 - distance(self.session.network))

    run = Judged(recipe({"judge": "metric", "tolerance": 0.25}), distance)
    assert 0.6 <= run.after_epoch(accuracy=0.8).value_of(METRICS["accuracy"]) <= 0.62


def test_a_cut_may_be_judged_by_a_metric_that_should_be_small():
    """The error grows by a hundredth of a degree with each weight."""

    def measured(run):
        return Evaluation(1.0, {"rotation_error": 10 * distance(run.session.network)})

    class Judged(Scripted):
        def evaluate(self, examples):
            self.sizes.append(len(examples))
            return measured(self)

    run, settings = Judged(recipe(), distance), Lobster(judge="metric", tolerance=0.25)
    run.pruner = PrunedTraining(settings, run.session.network, METRICS["rotation_error"])
    error = run.pruner.after_validation(run, measured(run)).metrics["rotation_error"]
    assert 12.3 <= error <= 12.5


@pytest.mark.parametrize(("group", "kept"), [("capsule", 1), ("type", 36)])
def test_whole_capsules_go_when_the_loss_lets_them(group, kept):
    run = Scripted(recipe({"group": group}), lambda network: 1.0 if network.classes.weight.any() else 2.0)
    run.after_epoch()
    network = run.session.network
    assert int(network.classes.weight.flatten(1).any(dim=1).sum()) == kept
    types = network.primary.conv.weight.flatten(1).any(dim=1)
    assert bool(types.all()) == (group == "capsule")


def test_a_network_that_has_not_begun_to_learn_is_not_cut():
    run = Scripted(recipe(), lambda network: 1.0)  # whatever is cut
    run.after_epoch()
    assert all(
        weight.all() for weight in (run.session.network.classes.weight, run.session.network.stem.weight)
    )


@pytest.mark.parametrize(("allowed", "is_told"), [(0.95, True), (0.5, False)])
def test_a_cut_of_nearly_all_weights_at_once_is_told(allowed, is_told):
    run = Scripted(recipe(), lambda network: 1.0 if sparsity_of(network) <= allowed else 2.0)
    run.after_epoch()
    assert allowed - 0.1 < sparsity_of(run.session.network) <= allowed
    problems = [finding.partition(":")[0] for finding in run.pruner.findings()]
    assert problems == ["pruning cut nearly all at once"] * is_told
    run.after_epoch()
    assert run.pruner.findings() == []  # nothing more was cut


def sparsity_of(network):
    return count_sparsity(network)["sparsity"]


def test_pulling_keeps_pace_with_bfloat16(tmp_path):
    result = train(recipe(epochs=1), tmp_path, Machine(device="cpu", precision="bf16"))
    assert result["metrics"]["sparsity"] > 0


@pytest.mark.slow
def test_two_processes_prune_what_one_does(tmp_path):
    path = tmp_path / "recipe.yaml"
    path.write_text(recipe_as_yaml(recipe({"strength": 1e-2, "tolerance": 0.05}, epochs=2)))
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m", "torchcaps"]
    full = [sys.executable, *launcher, "train", str(path), "--device", "cpu", "--devices", "2", "--json"]
    done = subprocess.run(
        [*full, "--out", str(tmp_path / "two")],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    train(recipe({"strength": 1e-2, "tolerance": 0.05}, epochs=2), tmp_path / "one", CPU)
    for first, second in zip(saved_rows(tmp_path / "one"), saved_rows(tmp_path / "two"), strict=True):
        assert second["val_loss"] == pytest.approx(first["val_loss"], abs=1e-4)
        assert second["sparsity"] == pytest.approx(first["sparsity"], abs=0.02)


@pytest.mark.slow
def test_cut_capsules_make_a_smaller_network_and_cut_weights_do_not(tmp_path):
    shares = {}
    for group in ("weight", "capsule"):
        settings = recipe(
            {"strength": 3e-3, "tolerance": 0.1, "group": group},
            model={**recipe().model, "stem_channels": 16, "primary_types": 8},
            data={"name": "synthetic_mnist", "limit": 480, "validation": 0.2},
            optim={"learning_rate": 3e-3, "decay": 0.9},
            epochs=12,
        )
        metrics = train(settings, tmp_path / group, CPU)["metrics"]
        assert metrics["test_accuracy"] > 0.95
        network = load_run(tmp_path / group).model
        left = measure_size(shrink(network)).parameters / measure_size(network).parameters
        shares[group] = (metrics["sparsity"], left)
    assert shares["weight"][0] > 0.6  # many zeros, scattered
    assert shares["weight"][1] > 0.95
    assert shares["capsule"][1] < 0.8


@pytest.mark.gpu
def test_a_captured_step_sees_strength_and_masks_change():
    results = []
    for capture in (True, False):
        settings = recipe({"strength": 1e-2, "decay": 0.5}, seed=1)
        session = Session(launch(Machine(device="cuda")), settings, None, capture=capture)
        for epoch in range(3):
            for indices in session.epoch(epoch):
                session.step(indices)
                session.advance()
            with torch.no_grad():
                weight = session.network.classes.weight
                weight[weight.abs() < 0.02 * (epoch + 1)] = 0.0
        results.append(session.network.classes.weight.detach().cpu())
    assert torch.equal(results[0] == 0, results[1] == 0)
    torch.testing.assert_close(*results, atol=1e-4, rtol=1e-3)


def test_the_pull_changes_in_place():
    weight = torch.nn.Parameter(torch.randn(4))
    pull = Pull([weight], Lobster())
    places = [pull._strength.data_ptr(), pull._masks[0].data_ptr()]
    weight.data[0] = 0.0
    pull.start_epoch(3)
    assert places == [pull._strength.data_ptr(), pull._masks[0].data_ptr()]
    assert float(pull._strength) == pytest.approx(1e-4 * 0.99**3)
    assert pull._masks[0].tolist() == [0, 1, 1, 1]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"pruning": {"layers": "clases"}}, "none is named 'clases'"),
        ({"pruning": {"group": "type", "layers": "stem"}}, "group=type needs"),
        ({"model": {"name": "effconv_capsnet_tiny_test"}, "pruning": {"group": "type"}}, "group=weight"),
        ({"pruning": {"lambda": 1}}, "key in recipe.pruning: 'lambda'"),
        ({"pruning": {"tolerance": -1}}, "tolerance must not be negative"),
        ({"pruning": {"min_metric": 50.0}}, "min_metric must lie between 0 and 1"),
        ({"annealing": {"r_max": 3}}, "exclude each other"),
    ],
)
def test_recipes_that_cannot_prune_are_refused(changes, message):
    with pytest.raises(UserError, match=message):
        build({**recipe_as_json(recipe()), **changes})
