"""What a run tells those who watch it, and how they stop it."""

import pytest
import torch

from torchcaps.train import Machine, Several, Silent, StoppedError, TensorBoard, Watcher, train

from small_runs import StopAfter, assert_same_weights, saved_rows, small_recipe, timeless

CPU = Machine(device="cpu")


class Listener(Silent):
    def __init__(self):
        self.rows = []

    def epoch_done(self, row):
        self.rows.append(row)


def test_each_epoch_ends_with_the_health_of_the_class_layer(tmp_path):
    listener = Listener()
    train(small_recipe(epochs=2, optim={}), tmp_path, CPU, watcher=listener)
    rows = saved_rows(tmp_path)
    assert len(rows) == len(listener.rows) == 2
    for told, saved in zip(listener.rows, rows, strict=True):
        assert {"dead_children", "dead_parents", "coupling_from_uniform"} <= set(saved["health"])
        assert all(isinstance(value, float) for value in saved["health"].values())
        assert told == saved  # findings too: pages about the run show those of the last epoch
    # two epochs of a tiny network: its couplings are still even
    assert any(finding.startswith("couplings are uniform: ") for finding in listener.rows[0]["findings"])


def test_a_network_without_routed_layers_has_no_health(tmp_path):
    listener = Listener()
    model = {"name": "conv_baseline_tiny_test", "image_size": 28, "num_classes": 10}
    train(small_recipe(model=model, epochs=1), tmp_path, CPU, watcher=listener)
    assert "health" not in saved_rows(tmp_path)[0]
    assert "findings" not in listener.rows[0]


def test_watching_does_not_change_what_is_learnt(tmp_path, monkeypatch):
    settings = small_recipe(epochs=2)
    train(settings, tmp_path / "watched", CPU)
    monkeypatch.setattr("torchcaps.train.loop.loop.watch_health", lambda model, batch: {})
    train(settings, tmp_path / "alone", CPU)
    watched, alone = (
        torch.load(tmp_path / name / "last.ckpt", weights_only=True) for name in ("watched", "alone")
    )
    assert all(torch.equal(values, watched["model"][name]) for name, values in alone["model"].items())


def test_tensorboard_gets_numbers_alone(tmp_path):
    written = []
    board = TensorBoard(tmp_path)
    board._writer.add_scalar = lambda name, value, step: written.append((name, value, step))
    findings = ["couplings are uniform: by 0.1%"]
    board.epoch_done({"epoch": 4, "train_loss": 1.0, "findings": findings, "health": {"dead_parents": 0.5}})
    assert ("health/dead_parents", 0.5, 4) in written
    assert {type(value) for _, value, _ in written} == {float}
    assert {step for _, _, step in written} == {4}


@pytest.mark.parametrize(
    "technique",
    [{}, {"annealing": {"r_max": 2, "patience": 1}}, pytest.param({"pruning": {}}, marks=pytest.mark.slow)],
)
@pytest.mark.parametrize(
    "epochs", [pytest.param(0, marks=pytest.mark.slow), 1, pytest.param(3, marks=pytest.mark.slow)]
)
def test_a_run_that_is_asked_to_stop_goes_on_to_the_same_bits(epochs, technique, tmp_path):
    settings = small_recipe(epochs=4, **technique)
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    expected = train(settings, whole, CPU)
    with pytest.raises(StoppedError):
        train(settings, cut, CPU, watcher=Several(Silent(), StopAfter(epochs)))
    assert len(saved_rows(cut)) == epochs
    assert not (cut / "result.json").exists()
    if epochs:  # within seconds of the last one, yet nothing is repeated
        assert torch.load(cut / "last.ckpt", weights_only=True)["progress"]["next_epoch"] == epochs
    listener = Listener()
    assert train(settings, cut, CPU, resume=True, watcher=listener)["metrics"] == expected["metrics"]
    assert [row["epoch"] for row in listener.rows] == list(range(epochs, len(saved_rows(whole))))
    assert timeless(cut) == timeless(whole)
    for path in whole.glob("*.safetensors"):
        assert_same_weights(path, cut / path.name)


def test_a_run_that_is_over_is_not_stopped(tmp_path):
    class Late(Listener):
        @property
        def wants_to_stop(self):
            return bool(self.rows)

    assert train(small_recipe(epochs=1), tmp_path, CPU, watcher=Late())


def test_the_test_images_are_counted(tmp_path):
    class Counter(Silent):
        def __init__(self):
            self.images, self.totals = 0, set()

        def testing(self, images, total):
            self.images += images
            self.totals.add(total)

    counters = Counter(), Counter()
    train(small_recipe(epochs=1), tmp_path, CPU, watcher=Several(*counters))
    assert all((counter.images, counter.totals) == (128, {128}) for counter in counters)


def test_each_watcher_is_one():
    assert all(isinstance(watcher, Watcher) for watcher in (Silent(), Several(), StopAfter(1)))
    assert not Several(Silent(), Silent()).wants_to_stop
