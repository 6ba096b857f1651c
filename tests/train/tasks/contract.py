"""What every task keeps; a test of a task inherits `TaskContract` and says what to train on."""

import json

import pytest
import torch
from torch.testing import assert_close

from torchcaps.train import (
    Machine,
    StoppedError,
    build,
    evaluate_run,
    export_run,
    load_predictor,
    load_run,
    train,
)
from torchcaps.train.loop import Session
from torchcaps.train.machine import launch
from torchcaps.train.run import load_split
from torchcaps.zoo import predict

from small_runs import StopAfter, assert_same_weights

CPU = Machine(device="cpu")


class TaskContract:
    """`recipe` is plain data for a run of a few seconds; `test_metrics_by_hand` is each task's own."""

    recipe: dict

    @pytest.fixture(scope="class")
    @classmethod
    def folder(cls, tmp_path_factory):
        out = tmp_path_factory.mktemp("run")
        train(build(cls.recipe), out, CPU)
        return out

    @pytest.fixture(scope="class")
    @classmethod
    def run(cls, folder):
        return load_run(folder)

    @pytest.fixture(scope="class")
    @classmethod
    def task(cls):
        return build(cls.recipe).task

    def test_one_step_lowers_the_loss_of_a_fixed_batch(self):
        session = Session(launch(CPU), build({**self.recipe, "optim": {"learning_rate": 1e-3}}), None)
        indices = next(iter(session.epoch(0)))
        losses = []
        for _ in range(2):
            session.step.random.manual_seed(0)
            losses.append(float(session.step.backward(indices)))
            session.step.update()
        assert losses[1] < losses[0]

    def test_metrics_by_hand(self):
        pytest.fail("each task has a case of its own, computed on paper")

    def test_the_results_have_the_metrics_of_the_task(self, folder, task):
        result = json.loads((folder / "result.json").read_text())
        row = json.loads((folder / "metrics.jsonl").read_text().splitlines()[-1])
        for metric in task.metrics:
            assert f"test_{metric.name}" in result["metrics"]
            assert f"val_{metric.name}" in result["metrics"]
            assert f"val_{metric.name}" in row
            assert metric.better in ("higher", "lower")
            assert metric.format(0.5)

    def test_evaluation_does_not_depend_on_the_batch_size(self, run, task):
        from torchcaps.train import Objective, evaluate

        examples, pipeline = load_split(run, "test")
        objective = Objective(run.recipe.loss, has_decoder=run.model.decoder is not None)
        whole, parts = (
            evaluate(run.model, examples, task, pipeline, objective, batch_size=size) for size in (1000, 7)
        )
        assert parts.loss == pytest.approx(whole.loss, rel=1e-4)
        assert parts.metrics == pytest.approx(dict(whole.metrics), rel=1e-6)

    def test_eval_says_what_training_said(self, run, folder, task):
        result = json.loads((folder / "result.json").read_text())["metrics"]
        found = evaluate_run(run)
        assert found["loss"] == pytest.approx(result["test_loss"], rel=1e-5)
        for metric in task.metrics:
            assert found[metric.name] == pytest.approx(result[f"test_{metric.name}"], rel=1e-5)
        json.dumps(found, allow_nan=False)

    def test_a_stopped_run_continues_to_the_same_bits(self, folder, tmp_path):
        with pytest.raises(StoppedError):
            train(build(self.recipe), tmp_path, CPU, watcher=StopAfter(1))
        train(build(self.recipe), tmp_path, CPU, resume=True)
        found = (json.loads((out / "result.json").read_text())["metrics"] for out in (folder, tmp_path))
        assert next(found) == next(found)
        assert_same_weights(folder, tmp_path)

    @pytest.mark.gpu
    def test_a_gpu_learns_what_the_processor_learns(self, folder, tmp_path):
        """Steps on a GPU are captured; only the draws of the augmentation differ."""
        expected = json.loads((folder / "result.json").read_text())["metrics"]["test_loss"]
        found = train(build(self.recipe), tmp_path, Machine(device="cuda"))["metrics"]["test_loss"]
        assert found == pytest.approx(expected, rel=0.3)

    @pytest.mark.slow
    def test_export_round_trips_and_answers_as_the_run(self, run, tmp_path):
        pytest.importorskip("onnxruntime")
        written = export_run(run, tmp_path / "model.onnx")
        assert written["largest_difference"] < 1e-4
        assert written["outputs"] == list(run.task.outputs(run.task.call(run.model, self.inputs(run), None)))
        picture = tmp_path / "image.png"
        self.save_image(run, picture)
        own = predict(run, [picture])[0]
        exported = predict(load_predictor(tmp_path / "model.onnx"), [picture])[0]
        assert own.keys() == exported.keys()
        assert_same(own, exported)

    def test_answers_are_plain_data(self, run, tmp_path):
        self.save_image(run, tmp_path / "image.png")
        rows = predict(run, [tmp_path / "image.png"])
        assert json.loads(json.dumps(rows, allow_nan=False)) == rows

    @staticmethod
    def inputs(run):
        return torch.rand(2, *run.model.image_shape)

    @staticmethod
    def save_image(run, path):
        from PIL import Image

        examples, _ = load_split(run, "test")
        pixels = examples.images[:1][0].permute(1, 2, 0).numpy()
        Image.fromarray(pixels[:, :, 0] if pixels.shape[2] == 1 else pixels).save(path)


def assert_same(one, other):
    """Plain data that agrees but for rounding."""
    if isinstance(one, dict):
        for key in one:
            assert_same(one[key], other[key])
    elif isinstance(one, float | int) and not isinstance(one, bool):
        assert other == pytest.approx(one, abs=1e-4)
    elif isinstance(one, list) and one and isinstance(one[0], float):
        assert_close(torch.tensor(one), torch.tensor(other), atol=1e-4, rtol=1e-4)
    else:
        assert one == other
