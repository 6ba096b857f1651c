"""What a run tells the one who watches it about the health of its capsules."""

import json

import torch

from torchcaps.cli.progress import ProgressBar
from torchcaps.core import METRICS
from torchcaps.train import Machine, Silent, TensorBoard, train
from torchcaps.train.recipe import build

CPU = Machine(device="cpu")
FINDINGS = ["couplings are uniform: by 0.1%", "parents are dead: 3 of 4"]


def recipe(name="dr_capsnet_tiny_test", **changes):
    values = {
        "model": {"name": name, "image_size": 28, "num_classes": 10},
        "data": {"name": "synthetic_mnist", "limit": 100, "validation": 0.2},
        "batch_size": 16,
        "epochs": 2,
    }
    return build({**values, **changes})


class Listener(Silent):
    def __init__(self):
        self.rows = []

    def epoch_done(self, row):
        self.rows.append(row)


def saved_rows(folder):
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def test_each_epoch_ends_with_the_health_of_the_class_layer(tmp_path):
    listener = Listener()
    train(recipe(loss={"reconstruction": 0.0005}), tmp_path, CPU, watcher=listener)
    rows = saved_rows(tmp_path)
    assert len(rows) == len(listener.rows) == 2
    for told, saved in zip(listener.rows, rows, strict=True):
        assert {"dead_children", "dead_parents", "coupling_from_uniform"} <= set(saved["health"])
        assert all(isinstance(value, float) for value in saved["health"].values())
        assert "findings" not in saved
        assert {key: value for key, value in told.items() if key != "findings"} == saved
    # two epochs of a tiny network: its couplings are still even
    assert any(finding.startswith("couplings are uniform: ") for finding in listener.rows[0]["findings"])


def test_a_network_without_routed_layers_has_no_health(tmp_path):
    listener = Listener()
    train(recipe("conv_baseline_tiny_test", epochs=1), tmp_path, CPU, watcher=listener)
    assert "health" not in saved_rows(tmp_path)[0]
    assert "findings" not in listener.rows[0]


def test_watching_does_not_change_what_is_learnt(tmp_path, monkeypatch):
    settings = recipe(loss={"reconstruction": 0.0005})
    train(settings, tmp_path / "watched", CPU)
    monkeypatch.setattr("torchcaps.train.loop.watch_health", lambda model, batch: {})
    train(settings, tmp_path / "alone", CPU)
    watched, alone = (
        torch.load(tmp_path / name / "last.ckpt", weights_only=True) for name in ("watched", "alone")
    )
    assert all(torch.equal(values, watched["model"][name]) for name, values in alone["model"].items())


def epoch(number, findings=()):
    row = {"epoch": number, "train_loss": 1.0, "val_loss": 1.0, "val_accuracy": 0.5, "images_per_second": 9.0}
    return row | ({"findings": list(findings)} if findings else {})


def test_the_progress_bar_tells_each_problem_once(capsys):
    bar = ProgressBar()
    bar.run_started({"parameters": 1, "images": 1, "epochs": 3, "metric": METRICS["accuracy"]})
    bar.epoch_done(epoch(0, FINDINGS))
    bar.epoch_done(epoch(1, ["couplings are uniform: by 0.3%"]))
    bar.epoch_done(epoch(2))
    text = capsys.readouterr().out
    assert text.count("couplings are uniform") == 1
    assert text.count("parents are dead") == 1


def test_tensorboard_gets_numbers_alone(tmp_path):
    written = []
    board = TensorBoard(tmp_path)
    board._writer.add_scalar = lambda name, value, step: written.append((name, value, step))
    board.epoch_done(epoch(4, FINDINGS) | {"health": {"dead_parents": 0.5}})
    assert ("health/dead_parents", 0.5, 4) in written
    assert {type(value) for _, value, _ in written} == {float}
    assert {step for _, _, step in written} == {4}
